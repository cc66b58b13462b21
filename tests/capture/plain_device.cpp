// A device of PyTorch with memory of its own and, like Apple's, without float64. The processor does its work.

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <optional>

namespace {

using at::Tensor;
using std::optional;

const c10::Device HERE(c10::DeviceType::PrivateUse1, 0);
const c10::Stream STREAM(c10::Stream::DEFAULT, HERE);
const c10::DispatchKeySet KEYS(c10::DispatchKey::PrivateUse1);

void release(void* memory) { c10::free_cpu(memory); }

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    void* memory = c10::alloc_cpu(size);
    return {memory, memory, &release, HERE};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t size) const override { default_copy_data(to, from, size); }
};
Memory memory;

// One stream, on which everything is over when it is asked for.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::Device exchangeDevice(c10::Device) const override { return HERE; }
  c10::Device getDevice() const override { return HERE; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return STREAM; }
  c10::Stream getDefaultStream(c10::Device) const override { return STREAM; }
  c10::Stream exchangeStream(c10::Stream) const override { return STREAM; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
};

c10::ScalarType allowed(optional<c10::ScalarType> type) {
  const auto found = c10::dtype_or_default(type);
  TORCH_CHECK_TYPE(found != at::kDouble && found != at::kComplexDouble, "This device has no float64.");
  return found;
}

Tensor empty(c10::IntArrayRef size, optional<c10::ScalarType> type, optional<c10::Layout>, optional<c10::Device>,
             optional<bool>, optional<c10::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory, KEYS, allowed(type), format);
}

Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, optional<c10::ScalarType> type,
                     optional<c10::Layout>, optional<c10::Device>, optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &memory, KEYS, allowed(type));
}

Tensor on_host(const Tensor& one) {
  if (one.is_cpu()) {
    return one;
  }
  return at::from_blob(one.data_ptr(), one.sizes(), one.strides(), at::TensorOptions().dtype(one.scalar_type()));
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool) {
  on_host(to).copy_(on_host(from).expand(to.sizes()));
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) { return copy_from(from, to, false); }

void on_processor(const c10::OperatorHandle& op, torch::jit::Stack* stack) { at::native::cpu_fallback(op, stack); }

const bool HOOKED = [] {
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();

}  // namespace

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &memory)
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_processor>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
}
