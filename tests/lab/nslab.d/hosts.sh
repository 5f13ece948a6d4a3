# shellcheck shell=bash disable=SC2154
# Making and removing the hosts: switches, wires, files, sshd. Read by nslab.

lab_up() {
  local n=$1 i
  [[ $n =~ ^[0-9]+$ ]] && [ "$n" -ge 1 ] && [ "$n" -le 200 ] || die "up N: 1 to 200 hosts"
  [ ! -e "$R" ] || die "lab $LAB is up already (nslab down)"
  mkdir -p "$R"
  trap 'trap - ERR; lab_down; exit 1' INT TERM ERR
  mount -t tmpfs -o size=256m,mode=755 nslab "$R"
  mount --make-private "$R"
  echo "$n" > "$R/n"
  echo "${NSLAB_OWNER:-0}" > "$R/owner"
  printf 'NET0=%s\nNET1=%s\n' "$NET0" "$NET1" > "$R/nets"
  shared_files "$n"
  make_switch "$n"
  for ((i = 0; i < n; i++)); do wire_host "$i"; start_init "$i"; done
  for ((i = 0; i < n; i++)); do await_init "$i"; start_sshd "$i"; done
  await_docker_down "$((n - 1))"
  trap - INT TERM ERR
}

lab_down() {
  [ -e "$R" ] || return 0
  local f ns
  for f in "$R"/u*.pid "$R"/n*.pid "$R"/sw*.pid; do
    if [ -e "$f" ]; then kill -KILL "$(cat "$f")" 2> /dev/null || true; fi
  done
  for ns in $(ip netns list | awk -v p="$LAB-" 'index($1, p) == 1 {print $1}'); do
    [[ $ns =~ ^$LAB-(n[0-9]+|sw)$ ]] && ip netns del "$ns" 2> /dev/null || true
  done
  umount -R -l "$R" 2> /dev/null || true
  rmdir "$R" 2> /dev/null || rm -rf "$R"
}

lab_gc() {
  local d owner
  for d in /run/nslab-*; do
    owner=$(cat "$d/owner" 2> /dev/null || echo 0)
    [ "$owner" != 0 ] && [ ! -d "/proc/$owner" ] || continue
    LAB=${d#/run/nslab-} "$here/nslab" down
  done
}

make_switch() {
  local n=$1 i
  ip netns add "$SW"
  for ((i = 0; i < n; i++)); do ip netns add "$LAB-n$i"; done
  ip -n "$SW" -batch - <<'B'
link set lo up
link add br0 type bridge
link add br1 mtu 9000 type bridge
link set br0 up
link set br1 up
B
}

mac() { printf '02:dd:0%s:00:00:%02x' "$2" "$1"; }  # stable, so that a rebuilt host keeps its neighbours

wire_host() {
  local i=$1 ns=$LAB-n$1
  . "$R/nets"
  ip -n "$SW" -batch - <<B
link add n${i}m type veth peer name eth0 netns $ns
link add n${i}f mtu 9000 type veth peer name eth1 mtu 9000 netns $ns
link set n${i}m master br0 up
link set n${i}f master br1 up
B
  # docker0 as real docker leaves it (NO-CARRIER, DOWN): a port must have come and gone.
  ip -n "$ns" -batch - <<B
link set lo up
link set eth0 address $(mac "$i" 0)
link set eth1 address $(mac "$i" 1)
addr add $NET0.$((10 + i))/24 dev eth0
addr add $NET1.$((10 + i))/24 dev eth1
link set eth0 up
link set eth1 up
link add docker0 type bridge
addr add 172.17.0.1/16 dev docker0
link set docker0 up
link add dv0 type veth peer name dv1
link set dv0 master docker0
link del dv0
route add default via $NET0.1 dev eth0
B
}

shared_files() {
  local n=$1 i
  . "$R/nets"
  mkdir -p "$R/ssh" "$R/bin" "$R/shared"
  chmod 1777 "$R/shared"
  if [ -n "${DISTDOCTOR:-}" ]; then
    : > "$R/bin/distdoctor"
    mount --bind "$(readlink -f "$DISTDOCTOR")" "$R/bin/distdoctor"
    local helpers
    helpers=$(dirname "$(readlink -f "$DISTDOCTOR")")/libexec/distdoctor
    if [ -d "$helpers" ]; then
      mkdir -p "$R/libexec/distdoctor"
      mount --bind "$helpers" "$R/libexec/distdoctor"
    fi
  fi
  {
    echo "127.0.0.1 localhost"
    echo "::1 ip6-localhost ip6-loopback"
    for ((i = 0; i < n; i++)); do
      echo "$NET0.$((10 + i)) node$i"
      echo "$NET1.$((10 + i)) node$i-fast"
    done
  } > "$R/hosts"
  ssh-keygen -q -t ed25519 -N '' -C nslab -f "$R/ssh/key"
  ssh-keygen -q -t ed25519 -N '' -C nslab-host -f "$R/ssh/host_key"
  write_ssh_config
}

write_ssh_config() {
  cat > "$R/ssh/sshd_config" <<C
HostKey $R/ssh/host_key
AuthorizedKeysFile $R/ssh/key.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
PidFile none
MaxStartups 100
SetEnv PATH=$(lab_path)
Subsystem sftp internal-sftp
C
  cat > "$R/ssh/ssh_config" <<C
Host *
  IdentityFile ~/.ssh/id_ed25519
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  GlobalKnownHostsFile /dev/null
  LogLevel ERROR
  ConnectTimeout 5
C
}

# PID 1 of a host: a shell that only reaps. Every other process of the host dies with it.
start_init() {
  local i=$1
  export R i here
  export -f host_main host_etc host_home write_base_files
  ip netns exec "$LAB-n$i" unshare --mount --uts --ipc --pid --fork --kill-child --propagation private \
    bash -c host_main > "$R/init.n$i.log" 2>&1 < /dev/null &
  echo $! > "$R/u$i.pid"
}

host_main() {
  set -e
  hostname "node$i"
  mount -t proc proc /proc
  printf init > /proc/$$/comm  # what it is: orphans come to it
  mount -t tmpfs -o size=64m,mode=1777 shm /dev/shm
  host_etc
  mkdir -p "$R/run.n$i"
  mount -t tmpfs -o mode=755 run "$R/run.n$i"
  mkdir -p "$R/run.n$i"/{sshd,lock,dbus,firewalld,"${R#/run/}"}
  mount --rbind "$R" "$R/run.n$i/${R#/run/}"
  mount --rbind "$R/run.n$i" /run
  mount -t tmpfs -o mode=755 log /var/log
  echo ok > "$R/ready.n$i"
  trap : CHLD TERM INT HUP
  while :; do sleep 3600 & wait; done
}

# Its own /etc (an overlay, or a copy where overlays are not to be had) and its own homes.
host_etc() {
  local d=$R/etc.n$i
  mkdir -p "$d"/{up,work}
  if ! mount -t overlay overlay -o "lowerdir=/etc,upperdir=$d/up,workdir=$d/work" /etc 2> /dev/null; then
    cp -a /etc/. "$d/up/" && mount --bind "$d/up" /etc
  fi
  rm -f /etc/hosts /etc/resolv.conf /etc/hostname /etc/motd /etc/nccl.conf
  write_base_files
  host_home root 0
  host_home lab 1000
  cp "$R/ssh/ssh_config" /etc/ssh/ssh_config
  cp "$R/ssh/sshd_config" /etc/ssh/sshd_config
}

write_base_files() {
  cp "$R/hosts" /etc/hosts
  echo "node$i" > /etc/hostname
  : > /etc/resolv.conf
  printf 'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n' > /etc/nsswitch.conf
  printf '%s:x:%s:%s:lab:%s:/bin/bash\n' root 0 0 "$R/home.n$i/root" lab 1000 1000 "$R/home.n$i/lab" > /etc/passwd.new
  grep -vE '^(root|lab):|^[^:]*:[^:]*:1000:' /etc/passwd >> /etc/passwd.new
  mv /etc/passwd.new /etc/passwd
  printf 'root:*:19000:0:99999:7:::\nlab:*:19000:0:99999:7:::\n' > /etc/shadow
  grep -qE '^lab:' /etc/group || echo 'lab:x:1000:' >> /etc/group
}

host_home() {  # USER UID
  local home=$R/home.n$i/$1
  mkdir -p "$home/.ssh"
  install -m 600 "$R/ssh/key" "$home/.ssh/id_ed25519"
  chown -R "$2:$2" "$home"
}

await_init() {
  local i=$1 t
  for ((t = 0; t < 250; t++)); do [ -e "$R/ready.n$i" ] && break; sleep 0.02; done
  [ -e "$R/ready.n$i" ] || { cat "$R/init.n$i.log" >&2; die "node$i did not start"; }
  # unshare --fork: its only child is the host's PID 1
  tr -d ' ' < "/proc/$(cat "$R/u$i.pid")/task/$(cat "$R/u$i.pid")/children" > "$R/n$i.pid"
}

# The kernel takes up to a second to see that docker0 lost its carrier.
await_docker_down() {
  local t
  for ((t = 0; t < 75; t++)); do
    in_net "$1" ip -br link show docker0 | grep -q NO-CARRIER && return 0
    sleep 0.02
  done
}

await_links_up() {
  local t
  for ((t = 0; t < 75; t++)); do
    [ "$(in_net "$1" ip -br link show | grep -cE '^eth[01]@.* UP ')" = 2 ] && return 0
    sleep 0.02
  done
}

start_sshd() { in_host "$1" /usr/sbin/sshd -f /etc/ssh/sshd_config -E /var/log/sshd.log; }

heal_host() {
  local i=$1 p
  if [ -e "$R/helpers.n$i" ]; then
    while read -r p; do in_host "$i" kill -KILL "$p" 2> /dev/null < /dev/null || true; done < "$R/helpers.n$i"
    rm "$R/helpers.n$i"
  fi
  for p in delay tap vpn; do
    if [ -e "$R/sw-$p$i.pid" ]; then kill -KILL "$(cat "$R/sw-$p$i.pid")" 2> /dev/null || true; rm "$R/sw-$p$i.pid"; fi
  done
  reset_host_files "$i"
  in_net "$i" nft flush ruleset
  for p in $(in_net "$i" ip -o link show | awk -F': ' '{sub(/@.*/, "", $2); print $2}'); do
    in_net "$i" ip link del "$p" 2> /dev/null || true
  done
  ip netns exec "$SW" nft flush ruleset
  ip -n "$SW" link del "brd$i" 2> /dev/null || true
  in_net "$i" ip route flush table all 2> /dev/null || true
  in_net "$i" ip rule flush
  in_net "$i" ip -batch - <<'B'
rule add pref 32766 table main
rule add pref 32767 table default
B
  in_net "$i" ip link set lo down
  reset_sysctls "$i"
  wire_host "$i"
  await_links_up "$i"
  in_host "$i" pkill -KILL -o -x sshd || true
  in_host "$i" cp "$R/ssh/sshd_config" /etc/ssh/sshd_config
  start_sshd "$i"
}

reset_host_files() {
  local i=$1
  in_host "$i" hostname "node$1"
  export i
  in_host "$i" env R="$R" i="$i" bash -c "$(declare -f write_base_files); write_base_files
    rm -f /etc/nccl.conf $R/home.n$i/*/.bashrc
    mount -o remount,rw,size=64m /dev/shm; find /dev/shm -mindepth 1 -delete"
}

reset_sysctls() {
  in_host "$1" sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
    net.ipv4.conf.all.arp_ignore=0 net.ipv4.conf.all.arp_announce=0 net.ipv4.conf.all.arp_filter=0 \
    net.ipv4.ip_local_port_range="32768 60999" net.core.somaxconn=4096
}
