// What the SIMULATED libnccl.so.2 of the tests asks of the SIMULATED libcuda.so.1 beyond CUDA.
#pragma once

extern "C" {
// Ordinal of the device whose context is current; -1 without one.
int distdoctor_sim_device();
// Work that another library has put on this stream, and the end of it.
void distdoctor_sim_begin(void* stream);
void distdoctor_sim_end(void* stream);
}
