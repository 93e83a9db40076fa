// What the solve of a step costs where a contact has a lane and everything lies in registers, in two kernels that stand for it:
//
//   operator   W = Y Y' of T contacts and I - (I + W)^-1, by Gauss-Jordan, from Y in shared memory
//   passes     of SubADMM with that operator: relaxation, cones, Anderson's acceleration of depth 3
//
//   nvcc -O3 -std=c++20 -arch=native --expt-relaxed-constexpr -Icuda bench/gpu/contact_lanes.cu -o contact_lanes && ./contact_lanes
//
// Prints JSON lines: nanoseconds of a world, medians of seven rounds on the device's clock. On random numbers: it is timed, not solved.
#include "core/group.h"
#include "device_clock.cuh"
#include "linalg/anderson.h"
#include "math/cone.h"

namespace stiction {
namespace {

constexpr int kLanes = 128;

/// op (worlds, 3T, 3T), contact (worlds, T, 8): free (3), bias, friction, give (2); out (worlds, T, 3).
template <int T>
__global__ void __launch_bounds__(kLanes, 1) passes(const float* op, const float* contact, float* out, int count) {
  constexpr int N = 3 * T;
  const Tile<T, true> g;
  const int64_t world = (blockIdx.x * kLanes + threadIdx.x) / T;
  const int lane = g.rank(), tile = threadIdx.x / T;
  __shared__ float4 shared[kLanes / T][N / 4 + 1];
  float* push = reinterpret_cast<float*>(shared[tile]);
  float t[3][N];
  UNROLL for (int j = 0; j < N; ++j)
    UNROLL for (int r = 0; r < 3; ++r) t[r][j] = op[(world * N + j) * N + 3 * lane + r];
  const float* own = contact + (world * T + lane) * 8;
  const float free[3] = {own[0], own[1], own[2]}, e = own[3], mu = own[4], give_t = 1 + own[5], give_n = 1 + own[6];
  float z[3] = {}, l[3] = {};
  Anderson<float, 3> anderson;
  History<float, 3> history[3];
  anderson.clear();
  UNROLL for (int r = 0; r < 3; ++r) anderson.clear(history[r], 0.0f), push[3 * lane + r] = z[r] - free[r] + l[r];
  for (int pass = 0; pass < count; ++pass) {
    __syncwarp();
    float w[3] = {free[0], free[1], free[2]};
    UNROLL for (int j = 0; j < N / 4; ++j) {
      const float4 p = shared[tile][j];
      UNROLL for (int r = 0; r < 3; ++r) {
        w[r] += t[r][4 * j] * p.x, w[r] += t[r][4 * j + 1] * p.y;
        w[r] += t[r][4 * j + 2] * p.z, w[r] += t[r][4 * j + 3] * p.w;
      }
    }
    anderson.begin_sums();
    UNROLL for (int r = 0; r < 3; ++r)
      anderson.gather(history[r], w[r] * 1.5f - z[r] * 0.5f - l[r], anderson.own, [](float x) { return x; });
    anderson.finish_sums(g, 1e-3f);
    float y[3];
    UNROLL for (int r = 0; r < 3; ++r) y[r] = anderson.step(history[r]);
    const Vec3<float> next =
        project_strict(Vec3<float>{-y[0] * give_t, -y[1] * give_t, -(y[2] + e) * give_n}, mu + 0.5f);
    l[0] = next.x, l[1] = next.y, l[2] = next.z;
    __syncwarp();
    UNROLL for (int r = 0; r < 3; ++r) z[r] = y[r] + l[r], push[3 * lane + r] = z[r] - free[r] + l[r];
  }
  UNROLL for (int r = 0; r < 3; ++r) out[(world * T + lane) * 3 + r] = l[r];
}

/// y (worlds, 3T, padded NV); out (worlds, 3T, 3T).
template <int T, int NV>
__global__ void __launch_bounds__(kLanes, 1) make_operator(const float* y, float* out) {
  constexpr int N = 3 * T, kQuads = (NV + 3) / 4, kStride = N * kQuads + 1;
  const int lane = threadIdx.x % T;
  const int64_t world = (blockIdx.x * kLanes + threadIdx.x) / T;
  extern __shared__ float4 pool[];
  float4* Y = pool + threadIdx.x / T * kStride;
  for (int k = lane; k < N * kQuads; k += T) Y[k] = reinterpret_cast<const float4*>(y)[world * (N * kQuads) + k];
  __syncwarp();
  float m[3][N];
  UNROLL for (int j = 0; j < N; ++j) {
    float sum[3] = {0, 0, 0};
    UNROLL for (int a = 0; a < kQuads; ++a) {
      const float4 q = Y[j * kQuads + a];
      UNROLL for (int r = 0; r < 3; ++r) {
        const float4 own = Y[(3 * lane + r) * kQuads + a];
        sum[r] += own.x * q.x + own.y * q.y + own.z * q.z + own.w * q.w;
      }
    }
    UNROLL for (int r = 0; r < 3; ++r) m[r][j] = sum[r] + (j == 3 * lane + r ? 1.0f : 0.0f);
  }
  __syncwarp();
  UNROLL for (int k = 0; k < N; ++k) {
    float4* row = Y + (k & 1) * (N / 4 + 1);
    const bool owns = lane == k / 3;
    const float inverse = 1.0f / m[k % 3][k];
    if (owns) {
      UNROLL for (int j = 0; j < N; ++j) m[k % 3][j] = j == k ? inverse : m[k % 3][j] * inverse;
      UNROLL for (int j = 0; j < N / 4; ++j)
        row[j] = float4{m[k % 3][4 * j], m[k % 3][4 * j + 1], m[k % 3][4 * j + 2], m[k % 3][4 * j + 3]};
    }
    __syncwarp();
    float f[3];
    UNROLL for (int r = 0; r < 3; ++r) {
      const bool pivots = owns && r == k % 3;
      f[r] = pivots ? 0.0f : m[r][k], m[r][k] = pivots ? m[r][k] : 0.0f;
    }
    UNROLL for (int j = 0; j < N / 4; ++j) {
      const float4 p = row[j];
      UNROLL for (int r = 0; r < 3; ++r) {
        m[r][4 * j] -= f[r] * p.x, m[r][4 * j + 1] -= f[r] * p.y;
        m[r][4 * j + 2] -= f[r] * p.z, m[r][4 * j + 3] -= f[r] * p.w;
      }
    }
  }
  UNROLL for (int j = 0; j < N; ++j)
    UNROLL for (int r = 0; r < 3; ++r)
      out[(world * N + j) * N + 3 * lane + r] = (j == 3 * lane + r ? 1.0f : 0.0f) - m[r][j];
}

__global__ void fill(float* to, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) {
    unsigned h = static_cast<unsigned>(i) * 2654435761u;
    h ^= h >> 15, h *= 2246822519u, h ^= h >> 13;
    to[i] = ((h & 0xffff) / 65536.0f - 0.5f) * 0.1f;
  }
}

struct Buffers {
  float *y, *op, *contact, *out;
};
template <int T, int NV>
void measure(int worlds, const Buffers& b) {
  const int bytes = kLanes / T * (3 * T * ((NV + 3) / 4) + 1) * static_cast<int>(sizeof(float4));
  REQUIRE(cudaFuncSetAttribute(make_operator<T, NV>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const int blocks = worlds * T / kLanes;
  double ms = milliseconds([&] { make_operator<T, NV><<<blocks, kLanes, bytes>>>(b.y, b.op); });
  std::printf("{\"kernel\": \"operator\", \"contacts\": %d, \"dofs\": %d, \"worlds\": %d, \"ns_per_world\": %.3f}\n", T,
              NV, worlds, 1e6 * ms / worlds);
  for (int count : {12, 24, 99}) {
    ms = milliseconds([&] { passes<T><<<blocks, kLanes>>>(b.op, b.contact, b.out, count); });
    std::printf("{\"kernel\": \"passes\", \"contacts\": %d, \"worlds\": %d, \"passes\": %d, \"ns_per_world\": %.3f}\n",
                T, worlds, count, 1e6 * ms / worlds);
  }
}

}  // namespace
}  // namespace stiction

int main() {
  using namespace stiction;
  constexpr size_t kMost = 65536, kN = 48;
  Buffers b;
  auto take = [](float*& to, size_t n) {
    REQUIRE(cudaMalloc(&to, n * sizeof(float)));
    fill<<<1024, 256>>>(to, n);
  };
  take(b.y, kMost * kN * 28), take(b.op, kMost * kN * kN), take(b.contact, kMost * 16 * 8), take(b.out, kMost * kN);
  for (int worlds : {4096, 16384, 65536}) {
    measure<4, 14>(worlds, b), measure<4, 18>(worlds, b);
    measure<8, 18>(worlds, b), measure<8, 27>(worlds, b), measure<16, 27>(worlds, b);
  }
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
