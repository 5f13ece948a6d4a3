# What only the helpers that talk to GPUs need. They are looked for, never required, and the
# program itself includes none of them.
find_path(DISTDOCTOR_CUDA_INCLUDE cuda.h PATHS /usr/local/cuda/include)
find_path(DISTDOCTOR_NCCL_INCLUDE nccl.h PATHS /usr/local/cuda/include)
if(DISTDOCTOR_CUDA_INCLUDE AND DISTDOCTOR_NCCL_INCLUDE)
  set(DISTDOCTOR_VENDOR_HEADERS TRUE)
  message(STATUS "CUDA and NCCL headers: found")
else()
  set(DISTDOCTOR_VENDOR_HEADERS FALSE)
  message(STATUS "CUDA and NCCL headers: not found; what needs them is left out, all else is built")
endif()
