#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "support/buffer.h"

namespace attn::test {

/// Scratch memory that is aligned to 16 (or 64) bytes and to nothing more, holds NaN at first, and notices who writes beside it.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes, std::size_t alignment = 16)
      : front_(128 + alignment),
        bytes_(bytes),
        storage_(static_cast<unsigned char*>(::operator new(front_ + bytes + kBack, std::align_val_t{128}))) {
    std::fill_n(storage_.get(), front_ + bytes + kBack, kByte);
  }

  [[nodiscard]] void* data() { return storage_.get() + front_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool intact() const {
    const auto untouched = [](unsigned char byte) { return byte == kByte; };
    const unsigned char* end = storage_.get() + front_ + bytes_;
    return std::all_of(storage_.get(), storage_.get() + front_, untouched) && std::all_of(end, end + kBack, untouched);
  }

 private:
  struct Free {
    void operator()(unsigned char* p) const { ::operator delete(p, std::align_val_t{128}); }
  };
  static constexpr unsigned char kByte = 0xFF;
  static constexpr std::size_t kBack = kAddressSanitizer ? 0 : 64;  // see Buffer
  std::size_t front_;
  std::size_t bytes_;
  std::unique_ptr<unsigned char, Free> storage_;
};

}  // namespace attn::test
