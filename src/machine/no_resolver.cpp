// libnl names glibc's resolver in functions that we never call. In the static program glibc's own
// would load NSS plugins of whatever libc the machine has; these say "not found" instead. Names are
// resolved by children (names of src/collect), never here.
#if defined(DISTDOCTOR_STATIC)

#include <netdb.h>

extern "C" {

int getaddrinfo(const char* /*name*/,
                const char* /*service*/,
                const addrinfo* /*hints*/,
                addrinfo** /*result*/) {
  return EAI_FAIL;
}

void freeaddrinfo(addrinfo* /*list*/) {}

protoent* getprotobyname(const char* /*name*/) {
  return nullptr;
}

protoent* getprotobynumber(int /*number*/) {
  return nullptr;
}

}  // extern "C"

#endif
