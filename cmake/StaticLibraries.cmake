# libnl as PkgConfig::NL. For the static program only archives will do: pkg-config names shared ones
# first, and -static-pie refuses those.
find_package(PkgConfig REQUIRED)
if(DISTDOCTOR_STATIC)
  set(shared_and_static ${CMAKE_FIND_LIBRARY_SUFFIXES})
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()
pkg_check_modules(NL REQUIRED IMPORTED_TARGET libnl-idiag-3.0 libnl-route-3.0 libnl-3.0)
if(DISTDOCTOR_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES ${shared_and_static})
endif()
