// A device that pretends to be an accelerator, for tests on machines without one.
//
// Its memory is ordinary memory. Most of its kernels are those of the CPU, called on a copy. Tests use it for what
// it refuses and what it counts. It refuses an operation on tensors of two devices, as an accelerator does. It
// counts waits: how often the host asks for a value that an accelerator would still have to compute. It also
// counts uploads, the copies from the host to the device. It shows neither the speed of a real device, nor which
// kernels a real device has.

#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/extension.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>

namespace toy {

constexpr c10::DeviceType kToy = c10::DeviceType::PrivateUse1;
const c10::Device kDevice(kToy, 0);

// --- the numbers of waits and uploads ---

std::mutex counts_mutex;
std::map<std::string, long> waits;  // operation for which the host waited → number of waits
long uploads = 0;
thread_local int depth_on_cpu = 0;  // > 0 in `run_on_cpu`, whose own copies are neither waits nor uploads

void count_wait(const std::string& what) {
  if (depth_on_cpu > 0) return;
  std::lock_guard<std::mutex> lock(counts_mutex);
  ++waits[what];
}

void count_upload() {
  if (depth_on_cpu > 0) return;
  std::lock_guard<std::mutex> lock(counts_mutex);
  ++uploads;
}

struct OnCpu {
  OnCpu() { ++depth_on_cpu; }
  ~OnCpu() { --depth_on_cpu; }
};

// --- memory ---

struct Memory final : public c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* block = nullptr;
    if (bytes > 0) {
      TORCH_CHECK(posix_memalign(&block, 64, bytes) == 0, "toy: no memory for ", bytes, " bytes");
    }
    return {block, block, &std::free, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};

Memory memory;
REGISTER_ALLOCATOR(kToy, &memory);

// --- one device, whose work is done when the call returns ---

struct Guard final : public c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kToy; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream) const override { return getStream(kDevice); }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

void reallocate(const c10::Storage& storage, size_t bytes) {
  c10::DataPtr block = memory.allocate(bytes);
  const size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) std::memcpy(block.get(), storage.data(), kept);
  storage.set_data_ptr(std::move(block));
  storage.set_nbytes(bytes);
}

struct Hooks final : public at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override { reallocate(storage, bytes); }
};

// --- the operations that a device must have itself: new tensors, copies, views ---

const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor new_tensor(c10::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                      std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory, kKeys, c10::dtype_or_default(type), format);
}

at::Tensor new_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> type,
                       std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &memory, kKeys, c10::dtype_or_default(type));
}

at::Tensor seen_by_cpu(const at::Tensor& tensor) {  // the same bytes
  if (tensor.is_cpu()) return tensor;
  auto* start = static_cast<char*>(tensor.storage().mutable_data());
  return at::from_blob(start + tensor.storage_offset() * tensor.element_size(), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

at::Tensor copy_bytes(const at::Tensor& from, const at::Tensor& to, bool /* non_blocking */) {
  if (to.is_cpu()) count_wait("copy to the host");
  if (from.is_cpu()) count_upload();
  seen_by_cpu(to).copy_(seen_by_cpu(from));
  return to;
}

const at::Tensor& resize(const at::Tensor& tensor, c10::SymIntArrayRef size, std::optional<at::MemoryFormat>) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  const size_t bytes = (tensor.storage_offset() + c10::multiply_integers(sizes)) * tensor.element_size();
  if (bytes > tensor.storage().nbytes()) reallocate(tensor.storage(), bytes);
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

at::Tensor copy_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_bytes(from, to, false);
}

at::Scalar read_number(const at::Tensor& tensor) {
  count_wait("item");
  return seen_by_cpu(tensor).item();
}

at::Tensor as_strided(const at::Tensor& tensor, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
  return at::cpu::as_strided_symint(tensor, size, stride, offset);
}

at::Tensor view(const at::Tensor& tensor, c10::SymIntArrayRef size) {
  return at::native::view(tensor, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor reshape_alias(const at::Tensor& tensor, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(tensor, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor unfold(const at::Tensor& tensor, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(tensor, dimension, size, step);
}

at::Tensor& set_storage(at::Tensor& tensor, at::Storage storage, c10::SymInt offset, c10::SymIntArrayRef size,
                        c10::SymIntArrayRef stride) {
  return at::cpu::set__symint(tensor, storage, offset, size, stride);
}

// --- the cells of recurrent layers: torch asks accelerators for fused ones, and the CPU has none ---

at::Tensor biased(const at::Tensor& gates, const std::optional<at::Tensor>& bias) {
  return bias.has_value() && bias->defined() ? gates + *bias : gates;
}

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates, const at::Tensor& state_gates,
                                            const at::Tensor& state, const std::optional<at::Tensor>& input_bias,
                                            const std::optional<at::Tensor>& state_bias) {
  const auto x = biased(input_gates, input_bias).chunk(3, 1);
  const auto h = biased(state_gates, state_bias).chunk(3, 1);
  const at::Tensor reset = (x[0] + h[0]).sigmoid(), update = (x[1] + h[1]).sigmoid();
  const at::Tensor candidate = (x[2] + reset * h[2]).tanh();
  return {candidate + update * (state - candidate), at::empty({0}, state.options())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& state_gates,
                                                         const at::Tensor& cell,
                                                         const std::optional<at::Tensor>& input_bias,
                                                         const std::optional<at::Tensor>& state_bias) {
  const auto gates = (biased(input_gates, input_bias) + biased(state_gates, state_bias)).chunk(4, 1);
  const at::Tensor next = gates[1].sigmoid() * cell + gates[0].sigmoid() * gates[2].tanh();
  return {gates[3].sigmoid() * next.tanh(), next, at::empty({0}, cell.options())};
}

// --- all other operations: the kernel of the CPU, after a check of the devices of the arguments ---

// Operations whose result has a shape that only the device knows, or that answer with a value on the host.
const std::unordered_set<std::string> kWaiting = {
    "aten::nonzero",      "aten::masked_select",      "aten::equal",      "aten::is_nonzero",
    "aten::_unique2",     "aten::unique_dim",         "aten::bincount",   "aten::unique_consecutive",
    "aten::repeat_interleave.Tensor",
};

bool is_indexing(const std::string& name) {
  return name == "aten::index.Tensor" || name == "aten::index_put_" || name == "aten::_index_put_impl_";
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  bool has_cpu = false, has_toy = false, has_mask = false;
  const auto look_at = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    if (tensor.device().type() == kToy) has_toy = true;
    if (tensor.is_cpu() && tensor.dim() > 0) has_cpu = true;  // a number on the CPU is allowed everywhere
    if (tensor.scalar_type() == at::kBool) has_mask = true;
  };
  for (const c10::IValue& argument : torch::jit::last(stack, op.schema().arguments().size())) {
    if (argument.isTensor()) {
      look_at(argument.toTensor());
    } else if (argument.isTensorList()) {
      for (const at::Tensor& tensor : argument.toTensorVector()) look_at(tensor);
    } else if (argument.isOptionalTensorList()) {
      for (const auto& tensor : argument.toOptionalTensorVector()) {
        if (tensor.has_value()) look_at(*tensor);
      }
    }
  }
  TORCH_CHECK(!(has_cpu && has_toy), "toy: ", name, " was given tensors of two devices");
  if (kWaiting.count(name) > 0 || (is_indexing(name) && has_mask)) count_wait(name);
  OnCpu guard;
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

}  // namespace toy

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&toy::run_on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &toy::new_tensor);
  library.impl("empty_strided", &toy::new_strided);
  library.impl("_copy_from", &toy::copy_bytes);
  library.impl("_copy_from_and_resize", &toy::copy_and_resize);
  library.impl("_local_scalar_dense", &toy::read_number);
  library.impl("resize_", &toy::resize);
  library.impl("as_strided", &toy::as_strided);
  library.impl("view", &toy::view);
  library.impl("_reshape_alias", &toy::reshape_alias);
  library.impl("unfold", &toy::unfold);
  library.impl("set_.source_Storage_storage_offset", &toy::set_storage);
}

// Both cells are made of differentiable operations. The first block serves calls with gradients, the second
// those without.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  library.impl("_thnn_fused_gru_cell", &toy::gru_cell);
  library.impl("_thnn_fused_lstm_cell", &toy::lstm_cell);
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_thnn_fused_gru_cell", &toy::gru_cell);
  library.impl("_thnn_fused_lstm_cell", &toy::lstm_cell);
}

// Autocast, as CUDA has it for the operations that jumok's models use.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) { library.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  KERNEL_PRIVATEUSEONE(addmm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(addmv, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(baddbmm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(bmm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(linear, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(matmul, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(mm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(mv, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(scaled_dot_product_attention, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(exp, fp32)
  KERNEL_PRIVATEUSEONE(layer_norm, fp32)
  KERNEL_PRIVATEUSEONE(log, fp32)
  KERNEL_PRIVATEUSEONE(log_softmax, int, fp32)
  KERNEL_PRIVATEUSEONE(softmax, int, fp32)
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  at::RegisterPrivateUse1HooksInterface(new toy::Hooks());
  module.def("waits", [] {
    std::lock_guard<std::mutex> lock(toy::counts_mutex);
    return toy::waits;
  });
  module.def("uploads", [] { return toy::uploads; });
  module.def("reset_counts", [] {
    std::lock_guard<std::mutex> lock(toy::counts_mutex);
    toy::waits.clear();
    toy::uploads = 0;
  });
}
