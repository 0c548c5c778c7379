#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "support/buffer.h"

namespace attn::test {

/// Scratch memory that is aligned to 16 bytes and to nothing more, holds NaN at first, and notices who writes beside it.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes)
      : bytes_(bytes), storage_(static_cast<unsigned char*>(::operator new(kFront + bytes + kBack, std::align_val_t{64}))) {
    std::fill_n(storage_.get(), kFront + bytes + kBack, kByte);
  }

  [[nodiscard]] void* data() { return storage_.get() + kFront; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool intact() const {
    const auto untouched = [](unsigned char byte) { return byte == kByte; };
    const unsigned char* end = storage_.get() + kFront + bytes_;
    return std::all_of(storage_.get(), storage_.get() + kFront, untouched) && std::all_of(end, end + kBack, untouched);
  }

 private:
  struct Free {
    void operator()(unsigned char* p) const { ::operator delete(p, std::align_val_t{64}); }
  };
  static constexpr unsigned char kByte = 0xFF;
  static constexpr std::size_t kFront = 64 + 16;
  static constexpr std::size_t kBack = kAddressSanitizer ? 0 : 64;  // see Buffer
  std::size_t bytes_;
  std::unique_ptr<unsigned char, Free> storage_;
};

}  // namespace attn::test
