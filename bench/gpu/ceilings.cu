// What a GPU can do at most in the coin of a step: arithmetic, memory by how lanes lie in it, launches:
//
//   nvcc -O3 -std=c++20 -arch=native bench/gpu/ceilings.cu -o ceilings && ./ceilings
//
// Prints JSON. Medians of seven rounds on the device's clock. Rows of "workspace" decide how slots should lie in memory
// (cuda/kernels/README.md): lanes of a world each with a workspace of its own, as slots have it, against fields that lie side by
// side for the lanes of a warp, and a workspace on the stack, which the hardware lays out so.
#include "device_clock.cuh"

namespace {

constexpr int kThreads = 64;

__global__ void nothing() {}

/// Eight chains of fused multiply-adds a lane.
__global__ void fused(float* out, int passes) {
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = threadIdx.x + i;
  for (int p = 0; p < passes; ++p)
    for (int i = 0; i < 8; ++i) x[i] = x[i] * 1.0001f + 0.5f;
  float sum = 0;
  for (float v : x) sum += v;
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void copy(const float4* from, float4* to, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}

/// Reads, changes and writes `words` numbers of a lane `passes` times; word k of lane i is at k across + i along.
__global__ void touch(float* memory, size_t along, size_t across, int words, int passes) {
  float* own = memory + (blockIdx.x * size_t{blockDim.x} + threadIdx.x) * along;
  for (int p = 0; p < passes; ++p)
    for (int k = 0; k < words; ++k) own[k * across] = own[k * across] * 0.999f + 1.0f;
}
/// The same on the stack, where indices are not known before.
template <int kWords>
__global__ void touch_stack(float* out, int words, int passes) {
  float own[kWords];
  for (int k = 0; k < kWords; ++k) own[k] = k;
  for (int p = 0; p < passes; ++p)
    for (int k = 0; k < words; ++k) own[k] = own[(k + p) % words] * 0.999f + 1.0f;
  out[blockIdx.x * blockDim.x + threadIdx.x] = own[words / 2];
}

}  // namespace

int main() {
  cudaDeviceProp device;
  REQUIRE(cudaGetDeviceProperties(&device, 0));
  const int processors = device.multiProcessorCount;
  std::printf("{\"device\": \"%s\", \"sm\": %d%d, \"processors\": %d, \"bytes\": %zu,\n", device.name, device.major,
              device.minor, processors, device.totalGlobalMem);

  constexpr int kLaunches = 1000;
  double ms = milliseconds([] {
    for (int i = 0; i < kLaunches; ++i) nothing<<<1, 32>>>();
  });
  std::printf(" \"launch_us\": %.3f,\n", 1e3 * ms / kLaunches);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  REQUIRE(cudaStreamCreate(&stream));
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < kLaunches; ++i) nothing<<<1, 32, 0, stream>>>();
  REQUIRE(cudaStreamEndCapture(stream, &graph)), REQUIRE(cudaGraphInstantiate(&ready, graph, 0));
  ms = milliseconds([&] { cudaGraphLaunch(ready, nullptr); });
  std::printf(" \"graph_node_us\": %.3f,\n", 1e3 * ms / kLaunches);

  float* out;
  REQUIRE(cudaMalloc(&out, size_t{1} << 26));
  constexpr int kPasses = 20000;
  ms = milliseconds([&] { fused<<<processors * 8, 256>>>(out, kPasses); });
  std::printf(" \"fp32_tflops\": %.2f,\n", 2e-9 * 8 * kPasses * processors * 8 * 256 / ms);

  constexpr size_t kCopied = size_t{1} << 31;
  float4 *from, *to;
  REQUIRE(cudaMalloc(&from, kCopied)), REQUIRE(cudaMalloc(&to, kCopied)), REQUIRE(cudaMemset(from, 0, kCopied));
  ms = milliseconds([&] { copy<<<processors * 16, 256>>>(from, to, kCopied / sizeof(float4)); });
  std::printf(" \"copy_TB_s\": %.3f,\n \"workspace\": [\n", 2e-9 * kCopied / ms);
  REQUIRE(cudaFree(from)), REQUIRE(cudaFree(to));

  // As many lanes as 12 warps a processor, which is what a step's kernels have.
  const size_t lanes = size_t(processors) * 12 * 32, apart = 126016 / sizeof(float);  // of a slot's lane
  const int blocks = static_cast<int>(lanes / kThreads);
  float* memory;
  REQUIRE(cudaMalloc(&memory, lanes * apart * sizeof(float)));
  for (int words : {128, 512, 2048}) {
    constexpr int kTimes = 20;
    const double each = 1e6 / (double(lanes) * words * kTimes);  // ns of a touch of one lane
    const double alone = milliseconds([&] { touch<<<blocks, kThreads>>>(memory, apart, 1, words, kTimes); });
    const double beside = milliseconds([&] { touch<<<blocks, kThreads>>>(memory, 1, lanes, words, kTimes); });
    const double stack = milliseconds([&] { touch_stack<2048><<<blocks, kThreads>>>(out, words, kTimes); });
    std::printf("  {\"words\": %d, \"own_ns\": %.6f, \"side_by_side_ns\": %.6f, \"stack_ns\": %.6f}%s\n", words,
                alone * each, beside * each, stack * each, words == 2048 ? "]}" : ",");
  }
  return 0;
}
