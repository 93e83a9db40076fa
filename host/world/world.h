// World: a batch of environments of one model, its buffers and its steps.
//
// Owns every array, sized once; step() does not allocate. Arrays are row-major (num_envs, ...) and the only truth: what a user
// writes into them is what the next step sees. Not thread-safe; one caller at a time.
//
// On a CUDA device arrays are in its memory, and the host sees mirrors of those that it has asked for (keep). Either the host has
// them or the device: the host from wait() on, when they are what the device computed; the device from release() on, which every
// call that queues work does first and which takes along what the host has written. What the host writes meanwhile is lost.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/queue.h"
#include "host/backend/cpu_libraries.h"
#include "host/backend/thread_pool.h"
#include "host/model/compile.h"
#include "host/world/memory.h"
#include "step/reset.h"

namespace stiction {

enum class DType { kFloat32, kFloat64, kInt32, kInt64, kBool };

/// An array for bindings: C-contiguous.
struct ArrayView {
  void* data;
  DType dtype;
  std::vector<int64_t> shape;
  bool writable;
};

struct WorldOptions {
  int num_envs = 1;
  bool float64 = false;
  bool cuda = false;                 // on a CUDA device, else on the CPU
  int device = kCurrentDevice;       // its ordinal; World::options() has the number
  std::string isa;                   // "", "scalar", "avx2", "avx512": "" is the best there is
  int num_threads = 0;               // 0: as many as cores
  int max_contacts = 0;              // 0: every slot
  std::string kernels;               // on CUDA: the image of a model's own, see load_kernels(); empty: the build's
  std::vector<std::string> per_env;  // parameters that differ between environments, see parameter_names()
  Options<double> step;              // h = 0: the model's
  SolverOptions<double> solver;
};

/// Model fields that may be per environment.
std::vector<std::string> parameter_names();

class World {
 public:
  /// Throws std::invalid_argument: sizes, options, a model that does not fit.
  World(std::shared_ptr<const Model> model, const WorldOptions& options);
  virtual ~World() = default;

  /// By name: qpos, qvel, ctrl, time, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat, status; xpos, xquat, body_linvel, body_angvel, site_xpos;
  /// certificate.<field>; contact.<field>, net_contact_force. Derived arrays are brought up to date by the call, and from then
  /// on by every step. Throws std::invalid_argument for another name.
  /// Where the backend has it; `host_array`: where the host sees it, from now on after every wait().
  ArrayView array(const std::string& name);
  ArrayView host_array(const std::string& name);
  /// Copies of an array to and from memory of the host, at once; for what is not kept.
  void read_array(const std::string& name, void* to);
  void write_array(const std::string& name, const void* from);
  std::vector<std::string> array_names() const;
  /// What the world takes of its memory, in bytes, by what it is for.
  virtual std::vector<std::pair<std::string, int64_t>> memory() const { return {{"arrays", array_bytes()}}; }

  virtual void step(int n) = 0;
  /// One step, and the milliseconds that each of its stages took on the device, by name. Throws std::invalid_argument on the CPU.
  virtual std::vector<std::pair<std::string, double>> time_step() {
    throw std::invalid_argument("stages are timed on a CUDA device only");
  }
  /// On a CUDA device step, forward, update_poses, reset_state and update only queue their work: this returns when it is done and
  /// the host has what is kept, and throws if it failed. All else waits by itself.
  void wait();
  /// Gives arrays to the device, for work that others queue.
  void release();
  /// The CUDA stream (cudaStream_t) of the world's device that later work is queued on, behind all before; null is the default
  /// stream. It must exist until another one is set. Where the stream is being captured, wait() first.
  virtual void set_stream(void*) {}
  virtual CudaQueue queue() const { return {}; }
  std::shared_ptr<Memory> allocate(size_t bytes) const;
  /// The host's view of an array from now on; `writable`: the device gets what is written there.
  void* keep(const std::shared_ptr<Memory>& memory, bool writable);
  /// Once: what is there now, waiting for it; what was written into the mirror, for work that is queued from now on.
  void fetch(std::initializer_list<Memory*> memories);
  void send(Memory& memory) { memory.upload(queue()); }
  /// Brings derived arrays up to date with qpos and qvel: poses of all environments; contacts, with impulses and net forces of
  /// 0, and the certificate's penetration of those with mask[i] != 0 (null: all), which are flagged where a step could not begin.
  /// State and records stay as they are.
  void forward(const uint8_t* mask);
  /// Poses alone.
  void update_poses();
  /// Environments with mask[i] != 0 (null: all) to qpos0 or to a keyframe; clears velocity, controls, warm start, status, time.
  void reset(const uint8_t* mask, int keyframe = -1);
  /// The same but for derived arrays, which `update` brings up to date; the mask, if any, is the backend's (Memory::data).
  void reset_state(const uint8_t* mask, int keyframe = -1);
  void update(const uint8_t* mask) { release(), update_watched(mask); }
  void clear_status(const uint8_t* mask);
  /// The last step's contact problem of one environment with the impulses that solved it. Views into scratch that the next call
  /// on this world overwrites. Applied forces and controls must be those of the step.
  virtual DenseProblem<double> contact_problem(int env) = 0;
  /// The problem that a step of one environment from its present state would meet with qfrc (nv) as its qfrc_applied, and the last
  /// step's impulses of the contacts that are still there. Views likewise.
  virtual DenseProblem<double> next_problem(int env, const double* qfrc) = 0;
  /// From the velocity v (nv) after a step from the present state of one environment to that of its solve, the contacts being those of the
  /// last next_problem: docs/theory.md, (2.5), (2.5a).
  virtual void to_solved_velocity(int env, double* v) = 0;
  /// The states at the beginning of the last substep: qpos (num_envs, nq), qvel (num_envs, nv), and what the substep before owed it
  /// of Coriolis forces (dynamics/coriolis.h), owed (num_envs, nv) in N s and N m s.
  virtual void previous_states(double* qpos, double* qvel, double* owed) = 0;
  virtual int64_t record_size() const = 0;
  virtual void get_records(double* rows) = 0;
  virtual void set_records(const double* rows) = 0;

  const Model& model() const { return *model_; }
  const WorldOptions& options() const { return options_; }
  int num_envs() const { return options_.num_envs; }
  int max_contacts() const { return max_contacts_; }
  virtual std::string isa() const = 0;
  virtual int pack_width() const = 0;
  int num_threads() const { return threads_->size(); }
  /// For what tasks do between steps.
  ThreadPool& threads() { return *threads_; }

  /// Held during a call by callers that may be several threads. Throws std::runtime_error if another one is in a call.
  class Call {
   public:
    explicit Call(World& world);
    ~Call() { world_.busy_.clear(); }
    Call(const Call&) = delete;

   private:
    World& world_;
  };

  static std::unique_ptr<World> create(std::shared_ptr<const Model> model, const WorldOptions& options);

 protected:
  struct Buffer {
    std::shared_ptr<Memory> memory;
    DType dtype;
    std::vector<int64_t> shape;
    bool writable;
    int64_t bytes() const;
    template <class T>
    T* as() {
      return static_cast<T*>(memory->data());
    }
  };
  /// Arrays are added without memory, so that a backend can tell what they need before it makes them all.
  void add(const std::string& name, DType dtype, std::vector<int64_t> shape, bool writable);
  /// Of the last step, as many as `slots` or the option says.
  void add_contacts(int slots);
  void add_parameters();
  void make_arrays();
  int64_t array_bytes() const;
  Buffer& buffer(const std::string& name);
  virtual void synchronize() const {}
  /// Of environments with mask[i] != 0 (null: all); others may be left out.
  virtual void update_kinematics(const uint8_t* mask) = 0;
  virtual void update_contacts(const uint8_t* mask) = 0;
  /// Contact arrays from the present states instead of the records.
  virtual void find_contacts(const uint8_t* mask) = 0;
  virtual void reset_rows(const uint8_t* mask, int keyframe) = 0;
  /// T: the world's float or double.
  template <class T>
  ResetRows<T> make_reset_rows();
  template <class T>
  ParameterArrays<T> parameter_arrays();
  void update_watched(const uint8_t* mask = nullptr);
  /// The host's mask where the backend reaches it.
  const uint8_t* reached(const uint8_t* mask);

  std::shared_ptr<const Model> model_;
  WorldOptions options_;
  int max_contacts_ = 0;
  std::unique_ptr<ThreadPool> threads_;
  std::vector<std::pair<std::string, std::unique_ptr<Buffer>>> buffers_;
  std::atomic_flag busy_;
  std::shared_ptr<Memory> begin_, mask_;  // what environments begin with; a mask that the backend reaches
  std::vector<std::pair<std::shared_ptr<Memory>, bool>> kept_;  // and whether the host may write
  bool host_has_ = true;
  bool watch_kinematics_ = false, watch_contacts_ = false;
  bool contacts_found_ = false;  // since the last step: contact arrays are not those of the records
};

}  // namespace stiction
