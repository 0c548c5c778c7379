#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

namespace attn::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

/// An array that notices who writes beside it, and that is aligned for its element type only (USER-CASES N14).
/// Every byte starts as 0xFF: NaN for float and half, so that reads beside the array and results never written show up.
/// Under AddressSanitizer nothing follows the last element, so that reads behind it are caught as well.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : storage_((kFront + size + kBack) * sizeof(T), kByte), size_(size) {}

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// null when empty: a call must not need what has no elements
  T* data() { return size_ == 0 ? nullptr : reinterpret_cast<T*>(storage_.data()) + kFront; }
  const T* data() const { return size_ == 0 ? nullptr : reinterpret_cast<const T*>(storage_.data()) + kFront; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }

  /// back to "never written"
  void erase() { storage_.assign(storage_.size(), kByte); }
  [[nodiscard]] bool written(std::size_t i) const {
    const T never = never_written();
    return std::memcmp(data() + i, &never, sizeof(T)) != 0;
  }
  /// nothing was written beside the elements
  [[nodiscard]] bool intact() const {
    for (std::size_t i = 0; i < storage_.size(); ++i) {
      const bool inside = i >= kFront * sizeof(T) && i < (kFront + size_) * sizeof(T);
      if (!inside && storage_[i] != kByte) return false;
    }
    return true;
  }
  bool operator==(const Buffer&) const = default;

 private:
  static T never_written() {
    T value;
    std::memset(&value, kByte, sizeof(T));
    return value;
  }
  static constexpr unsigned char kByte = 0xFF;
  static constexpr std::size_t kFront = 17;  // odd: off every vector's alignment by one element
  static constexpr std::size_t kBack = kAddressSanitizer ? 0 : 32;
  std::vector<unsigned char> storage_;
  std::size_t size_ = 0;
};

}  // namespace attn::test
