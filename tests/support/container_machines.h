// Captured machines as programs in containers see them. There is no container engine here: what
// they answer is typed by hand, after the public documentation that stands beside each.
#pragma once

#include "machine/captured.h"

#include <cstdint>
#include <string>

namespace distdoctor::testing {

// `docker run` without options, cgroup version 2, as root: the 14 default capabilities, masked
// paths, 64 MiB of /dev/shm (docs.docker.com "docker container run", "Runtime privilege and Linux
// capabilities").
machine::CapturedMachine fake_docker_default();
// The same on a host with cgroup version 1, whose paths the container shows (docs.docker.com
// "Runtime metrics").
machine::CapturedMachine fake_docker_v1();
// A pod with a memory limit and an emptyDir of medium Memory at /dev/shm (kubernetes.io "Configure
// a Pod to Use a Volume", "Resource Management for Pods and Containers").
machine::CapturedMachine fake_pod();
// The ports that Istio's sidecar listens on in the pod's network (istio.io "Application
// Requirements").
void add_fake_sidecar(machine::CapturedMachine& captured);
// `podman run` of user 1000: a user namespace, crun, fuse-overlayfs (docs.podman.io "podman-run").
machine::CapturedMachine fake_podman_rootless();
// `apptainer exec --nv image.sif`: the host's /dev/shm and /tmp, a read-only root (apptainer.org
// "Bind Paths and Mounts").
machine::CapturedMachine fake_apptainer();
// `srun --container-image`: pyxis and enroot in a Slurm step (github.com/NVIDIA/enroot,
// doc/configuration.md; github.com/NVIDIA/pyxis).
machine::CapturedMachine fake_enroot();
// Ubuntu in WSL 2 (learn.microsoft.com "Advanced settings configuration in WSL").
machine::CapturedMachine fake_wsl_distribution();

void set_shm(machine::CapturedMachine& captured, std::int64_t bytes);

}  // namespace distdoctor::testing
