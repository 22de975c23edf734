#!/usr/bin/env bash
# Fetches the real programs that the system tests talk to, from Debian's unstable release, into one folder:
#
#   bash test/peers/install.sh [DIR]        DIR is .peers in the repository root by default
#
# Afterwards DIR/bin holds prometheus, vmagent and victoria-metrics, and DIR/VERSIONS says which packages they came from.
# Nothing outside DIR is changed and no root is needed: apt gets its own lists, cache and sources below DIR. The mirror
# is the one that this machine's own apt uses for Debian, and what it serves must be signed by Debian's archive key.
set -euo pipefail

PACKAGES=(prometheus victoria-metrics)
# The versions that the tests were written against, by package.
declare -A WANTED=([prometheus]=3.5 [victoria-metrics]=1.145)
PROGRAMS=(prometheus vmagent victoria-metrics)
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
ATTEMPTS=4

repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
dir=${1:-$repository/.peers}

say() { printf 'peers: %s\n' "$*"; }
fail() {
  printf 'peers: %s\n' "$*" >&2
  exit 1
}

# Runs a command that needs the network, again after a pause when it fails.
with_retries() {
  local attempt
  for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
    if "$@"; then return 0; fi
    if ((attempt < ATTEMPTS)); then
      say "attempt $attempt of $ATTEMPTS failed: $1 ${2:-}; trying again in $((attempt * 2)) s" >&2
      sleep $((attempt * 2))
    fi
  done
  return 1
}

# Says whether a program starts on this machine at all (a missing library or a wrong architecture shows here).
# vmagent and victoria-metrics leave --version empty in Debian, so their help is asked for instead.
answers() {
  local program=$1 text
  [[ -x $program ]] || return 1
  case ${program##*/} in
    prometheus) text=$("$program" --version 2>&1) && [[ $text == *"prometheus, version"* ]] ;;
    *) text=$("$program" -help 2>&1 || true) && [[ $text == *"-httpListenAddr"* ]] ;;
  esac
}

# Prints the version of a package that VERSIONS notes, nothing when it has none.
noted_version() {
  [[ -f $dir/VERSIONS ]] || return 0
  awk -v package="$1" '$1 == package { print $2 }' "$dir/VERSIONS"
}

is_wanted() { # PACKAGE VERSION
  [[ $2 == "${WANTED[$1]}" || $2 == "${WANTED[$1]}".* ]]
}

all_answer() { # FOLDER
  local program
  for program in "${PROGRAMS[@]}"; do answers "$1/$program" || return 1; done
}

complete() {
  local package
  for package in "${PACKAGES[@]}"; do is_wanted "$package" "$(noted_version "$package")" || return 1; done
  all_answer "$dir/bin"
}

# Prints the addresses from which this machine's apt takes Debian itself (not its security updates), one a line.
# An apt that was never updated does not know yet whose repositories its sources are: then the sources are read.
debian_mirrors() {
  local known
  known=$(apt-get indextargets --format '$(REPO_URI)|$(ORIGIN)|$(LABEL)|$(CODENAME)' 'Created-By: Packages' 2>/dev/null |
    awk -F'|' '$2 == "Debian" && $3 == "Debian" && $4 !~ /security/ { print $1 }' | awk '!seen[$0]++') || true
  if [[ -n $known ]]; then
    printf '%s\n' "$known"
    return 0
  fi
  {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | one_line_sources
    # A blank line between the files keeps their stanzas apart.
    awk 'FNR == 1 { print "" } { print }' /etc/apt/sources.list.d/*.sources 2>/dev/null | deb822_sources
  } | awk '$2 !~ /security/ && $1 !~ /security/ && $1 ~ /debian\/?$|^mirror/ && !seen[$1]++ { print $1 }' || true
}

# "deb [option=value ...] URI SUITE COMPONENT..." to "URI SUITE".
one_line_sources() {
  sed -n -E 's/^[[:space:]]*deb[[:space:]]+(\[[^]]*\][[:space:]]*)?([^[:space:]]+)[[:space:]]+([^[:space:]]+).*/\2 \3/p'
}

# Stanzas of "Types:", "URIs:", "Suites:", "Enabled:" (values may go on in indented lines) to "URI SUITE" lines.
deb822_sources() {
  awk '
    function flush(  i, j, uris, suites, n, m) {
      if (field["types"] ~ /(^| )deb( |$)/ && tolower(field["enabled"]) !~ /no|false/) {
        n = split(field["uris"], uris, " "); m = split(field["suites"], suites, " ")
        for (i = 1; i <= n; i++) for (j = 1; j <= m; j++) print uris[i], suites[j]
      }
      delete field; name = ""
    }
    /^#/ { next }
    /^[[:space:]]*$/ { flush(); next }
    /^[[:space:]]/ { if (name != "") field[name] = field[name] " " $0; next }
    {
      colon = index($0, ":"); name = tolower(substr($0, 1, colon - 1)); value = substr($0, colon + 1)
      gsub(/^[[:space:]]+|[[:space:]]+$/, "", value); field[name] = value
    }
    END { flush() }
  ' | tr '\t' ' '
}

# Writes an apt configuration that lives below $work alone and knows one source, unstable on the mirror $1.
configure_apt() {
  mkdir -p "$work"/{state/lists/partial,cache/archives/partial,log,debs}
  cat >"$work/unstable.sources" <<END
Types: deb
URIs: $1
Suites: sid
Components: main
Targets: Packages
Signed-By: $KEYRING
END
  # Read after the machine's own files, whose proxy settings stay in force and whose hooks do not.
  cat >"$work/apt.conf" <<END
#clear APT::Update;
#clear DPkg::Post-Invoke;
#clear APT::Default-Release;
Dir::State "$work/state";
Dir::State::status "/dev/null";
Dir::Cache "$work/cache";
Dir::Log "$work/log";
Dir::Etc::sourcelist "$work/unstable.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Sandbox::User "$(id -un)";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "2";
END
}

update_lists() { apt-get -c "$work/apt.conf" -qq update; }

# The newest version on offer that the tests were written against, else the newest at all.
choose_version() { # PACKAGE
  local offered version
  offered=$(apt-cache -c "$work/apt.conf" madison "$1" | awk -F'|' '{ gsub(/ /, "", $2); print $2 }')
  for version in $offered; do
    if is_wanted "$1" "$version"; then
      printf '%s\n' "$version"
      return 0
    fi
  done
  printf '%s\n' "$offered" | head -n 1
}

download() { # PACKAGE VERSION
  (cd "$work/debs" && apt-get -c "$work/apt.conf" -qq download "$1=$2")
}

if complete; then
  say "already in $dir: $(paste -sd, "$dir/VERSIONS")"
  exit 0
fi

for tool in apt-get apt-cache dpkg-deb awk sed; do
  command -v "$tool" >/dev/null || fail "$tool is not installed: this script needs a Debian machine with apt"
done
[[ -r $KEYRING ]] || fail "$KEYRING is missing: install the package debian-archive-keyring"

mkdir -p "$dir"
dir=$(cd -- "$dir" && pwd)
work=$(mktemp -d "$dir/install.XXXXXX")
trap 'rm -rf "$work"' EXIT

mapfile -t mirrors < <(debian_mirrors)
((${#mirrors[@]} > 0)) || fail "found no Debian mirror in this machine's apt sources (/etc/apt/sources.list, /etc/apt/sources.list.d)"

mirror=""
for candidate in "${mirrors[@]}"; do
  say "reading the package lists of unstable from this machine's Debian mirror, $candidate"
  configure_apt "$candidate"
  if with_retries update_lists; then
    mirror=$candidate
    break
  fi
done
[[ -n $mirror ]] || fail "could not read the package lists of unstable from: ${mirrors[*]}"

: >"$work/VERSIONS"
for package in "${PACKAGES[@]}"; do
  version=$(choose_version "$package")
  [[ -n $version ]] || fail "unstable on $mirror has no package $package for $(dpkg --print-architecture)"
  is_wanted "$package" "$version" ||
    say "unstable has $package $version now; the tests were written against ${WANTED[$package]}" >&2
  say "downloading $package $version"
  with_retries download "$package" "$version" || fail "could not download $package $version from $mirror"
  debs=("$work/debs/${package}"_*.deb)
  dpkg-deb -x "${debs[0]}" "$work/root"
  printf '%s %s\n' "$package" "$(dpkg-deb -f "${debs[0]}" Version)" >>"$work/VERSIONS"
  rm -f "${debs[0]}"
done

mkdir -p "$work/bin"
for program in "${PROGRAMS[@]}"; do
  [[ -f $work/root/usr/bin/$program ]] || fail "the packages ${PACKAGES[*]} hold no usr/bin/$program"
  mv "$work/root/usr/bin/$program" "$work/bin/$program"
  answers "$work/bin/$program" || fail "$program does not run on this machine: $("$work/bin/$program" --version 2>&1 | head -n 3)"
done

# Whole or not at all: a run that was cut short leaves no half of it behind.
rm -rf "$dir/bin" "$dir/VERSIONS"
mv "$work/bin" "$dir/bin"
mv "$work/VERSIONS" "$dir/VERSIONS"
say "installed in $dir: $(paste -sd, "$dir/VERSIONS")"
