#include "linalg/block_cholesky.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <limits>
#include <random>
#include <vector>

namespace stiction {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

ColumnBlocks blocks_of(const std::vector<int>& sizes) {
  ColumnBlocks b;
  b.count = 0;
  for (int size : sizes) b.begin[b.count + 1] = b.begin[b.count] + size, ++b.count;
  return b;
}

TEST(ColumnBlocks, WalksASetInAsFewRangesAsThereAre) {
  const ColumnBlocks b = blocks_of({2, 3, 1, 6});
  std::vector<int> seen;
  b.each_run(0b1011, [&](int from, int to) { seen.push_back(from), seen.push_back(to); });
  EXPECT_EQ(seen, (std::vector<int>{0, 5, 6, 12}));
  EXPECT_EQ(b.width(0b1011), 11);
  EXPECT_EQ(b.runs(0b1111).count, 1);
  EXPECT_EQ(b.runs(0).count, 0);
  const ColumnBlocks most = blocks_of(std::vector<int>(ColumnBlocks::kMost, 1));
  EXPECT_EQ(most.width(uint32_t((uint64_t(1) << ColumnBlocks::kMost) - 1)), ColumnBlocks::kMost);
}

/// A = I + sum x x' of random rows that touch the given sets; only what the pattern names is handed over, NaN elsewhere.
struct Random {
  ColumnBlocks blocks;
  std::vector<uint32_t> sets;
  std::vector<Eigen::VectorXd> rows;
  Matrix A;
  BlockPattern pattern;

  Random(const std::vector<int>& sizes, unsigned seed) : blocks(blocks_of(sizes)) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    const int n = blocks.columns();
    A = Matrix::Identity(n, n);
    for (int i = 0; i < 7; ++i) {
      uint32_t set = 0;
      for (int k = 0; k < 2; ++k) set |= uint32_t(1) << random() % static_cast<unsigned>(blocks.count);
      Eigen::VectorXd x = Eigen::VectorXd::Zero(n);
      blocks.each_run(set, [&](int from, int to) {
        for (int a = from; a < to; ++a) x[a] = normal(random);
      });
      A += x * x.transpose(), sets.push_back(set), rows.push_back(x), pattern.couple(set);
    }
    pattern.fill(blocks.count);
  }
  Matrix named() const {
    Matrix U = Matrix::Constant(A.rows(), A.cols(), std::numeric_limits<double>::quiet_NaN());
    for (int b = 0; b < blocks.count; ++b)
      for (int k = blocks.begin[b]; k < blocks.begin[b + 1]; ++k)
        blocks.each_run(pattern.upper[b] | uint32_t(1) << b, [&](int from, int to) {
          for (int j = std::max(from, k); j < to; ++j) U(k, j) = A(k, j);
        });
    return U;
  }
};

TEST(BlockCholesky, FactorsAndSolvesAsADenseOneDoes) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Random r({3, 1, 6, 2, 4, 5}, seed);
    const int n = r.blocks.columns();
    Matrix U = r.named();
    ASSERT_TRUE(block_factor(r.blocks, r.pattern, n, U.data()));
    const Matrix dense = r.A.llt().matrixU();
    for (size_t i = 0; i < r.rows.size(); ++i) {
      const uint32_t all = r.pattern.reached(r.sets[i]);
      EXPECT_EQ(all & r.sets[i], r.sets[i]);
      Eigen::VectorXd x = r.rows[i];
      block_solve<1>(r.blocks, r.pattern, n, U.data(), all, x.data());
      const Eigen::VectorXd expected = dense.transpose().triangularView<Eigen::Lower>().solve(r.rows[i]);
      EXPECT_LE((x - expected).cwiseAbs().maxCoeff(), 1e-12) << seed;
      r.blocks.each_run(~all & r.blocks.all(), [&](int from, int to) {
        for (int a = from; a < to; ++a) EXPECT_EQ(expected[a], 0) << "not told that it is reached";
      });
    }
  }
}

TEST(BlockCholesky, SolvesAWholeSystem) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Random r({3, 1, 6, 2, 4, 5}, seed);
    const int n = r.blocks.columns();
    Matrix U = r.named();
    ASSERT_TRUE(block_factor(r.blocks, r.pattern, n, U.data()));
    const Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(n, -1, 2);
    Eigen::VectorXd x = b;
    block_solve<1>(r.blocks, r.pattern, n, U.data(), r.blocks.all(), x.data());
    block_solve_back(r.blocks, r.pattern, n, U.data(), x.data());
    EXPECT_LE((r.A * x - b).cwiseAbs().maxCoeff(), 1e-11) << seed;
  }
}

TEST(BlockCholesky, TellsWhatIsNotPositive) {
  const ColumnBlocks b = blocks_of({1, 1});
  BlockPattern pattern;
  pattern.couple(0b11);
  double indefinite[] = {1, 2, 2, 1}, nan[] = {1, 0, 0, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_FALSE(block_factor(b, pattern, 2, indefinite, 0.5));
  EXPECT_FALSE(block_factor(b, pattern, 2, nan, 0.5));
}

}  // namespace
}  // namespace stiction
