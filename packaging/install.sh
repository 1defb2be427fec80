#!/bin/sh
# Installs Terrace from a directory or an address that has its archives and SHA256SUMS.
#   sh install.sh FROM [--prefix DIR]          root: /usr/local, other users: ~/.local
#   sh install.sh --uninstall [--prefix DIR]   removes what it installed, if it is unchanged
set -eu
export LC_ALL=C
fail() { echo "install.sh: $*" >&2; exit 1; }
from='' uninstall='' prefix=${HOME:-}/.local
[ "$(id -u)" != 0 ] || prefix=/usr/local
while [ $# -gt 0 ]; do case $1 in
    --uninstall) uninstall=1 ;;
    --prefix) [ $# -gt 1 ] || fail "--prefix needs a directory"; prefix=$2; shift ;;
    -*) fail "unknown option $1" ;;
    *) from=$1 ;;
esac; shift; done
case $prefix in /*) ;; *) fail "the prefix must begin with /" ;; esac
list=$prefix/share/terrace/installed    # each file as sha256sum writes it, then each directory
files() { sed -n 's/^[0-9a-f]*  //p' "$1"; }
changed() { (cd "$prefix" && sha256sum -c "$list" 2>/dev/null) | sed -n 's/: FAILED$//p'; }
remove_installed() (
    cd "$prefix"; files "$list" | while read -r file; do
        if changed | grep -qxF "$file"; then echo "kept, as changed: $file"; else rm -f "$file"; fi
    done
    directories=$(sed -n 's/^directory //p' "$list" | sort -r); rm "$list"
    for one in $directories; do rmdir "$one" 2>/dev/null || true; done
)
if [ -n "$uninstall" ]; then
    [ -f "$list" ] || fail "nothing is installed below $prefix"
    [ ! -d /run/systemd/system ] || for unit in terrace-recorder terrace-warm-watch; do
        systemctl disable --now $unit 2>/dev/null || true; done
    remove_installed; exit 0; fi
[ -n "$from" ] || fail "say from where: a directory or an address"
machine=$(uname -m); work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; trap 'exit 1' HUP INT TERM
fetch() { case $from in
    *://*) if command -v curl >/dev/null; then curl -fsSL -o "$work/$1" "$from/$1"
        else wget -q -O "$work/$1" "$from/$1"; fi ;;
    *) cp "$from/$1" "$work/$1" ;;
esac || fail "cannot get $from/$1"; }
fetch SHA256SUMS
sum=$(grep "  terrace-[^ /]*-$machine-unknown-linux-gnu\.tar\.gz\$" "$work/SHA256SUMS" | tail -n 1)
archive=${sum#*  }; [ -n "$sum" ] || fail "SHA256SUMS names no archive for $machine"
fetch "$archive"
(cd "$work" && echo "$sum" | sha256sum -c >/dev/null 2>&1) || fail "$archive is damaged: refused"
mkdir "$work/tree"; tar -xzf "$work/$archive" -C "$work/tree" --strip-components=1; cd "$work/tree"
bin/terrace --version >/dev/null || fail "it does not run here: it needs glibc 2.28 or newer"
sed -i "s|/usr/bin/terrace|$prefix/bin/terrace|" lib/systemd/system/*.service
[ "$prefix" = /usr/local ] || rm -r lib    # systemd reads no other place
find . -type f | sed 's|^\./||' | sort | xargs sha256sum >"$work/installed"
if [ -f "$list" ]; then
    [ -z "$(changed)" ] || fail "changed since it was installed: $(changed | head -n 1)"
    grep '^directory ' "$list" >>"$work/installed" || true; remove_installed
fi
files "$work/installed" | while read -r file; do
    [ ! -e "$prefix/$file" ] || fail "$prefix/$file is not from here"; done
{ find . -type d; echo share/terrace; } | sed 's|^\./||' | sort | while read -r one; do
    [ -d "$prefix/$one" ] || { mkdir -p "$prefix/$one"; echo "directory $one"; }
done >>"$work/installed"
cp -R . "$prefix/"; cp "$work/installed" "$list"
echo "installed $prefix/bin/terrace; its removal: sh install.sh --uninstall --prefix $prefix"
[ -d /run/systemd/system ] || echo "no systemd: start from cron or runit: terrace record --keep 24h"
