// loader_victim LIBRARY NAME: opens LIBRARY, then prints the file that stands for NAME in this
// process by now, or nothing where the loader found none.
#include <dlfcn.h>
#include <link.h>

#include <climits>
#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  void* found = dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD);
  link_map* map = nullptr;
  if (found != nullptr && dlinfo(found, RTLD_DI_LINKMAP, &map) == 0) {
    char* path = realpath(map->l_name, nullptr);
    std::cout << (path != nullptr ? path : map->l_name);
    std::free(path);
  }
  std::cout << '\n';
  return 0;
}
