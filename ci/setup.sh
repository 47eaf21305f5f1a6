# Setting a machine up, for ci/test and ci/conform. Read it with `source`, in the project's root.
# Everything is installed once: a second run starts at once.

say() { printf '\n== %s\n' "$*"; }

# Install Debian packages; fails quietly where that cannot be done.
apt_install() {
    command -v apt-get >/dev/null || return 1
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null || return 1
        root=(sudo)
    fi
    "${root[@]}" apt-get update -qq || return 1
    # With RUNLEVEL=1 a package does not start its service: the tests start their own.
    "${root[@]}" env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
}

# Make sure of a program that some tests need: program, Debian packages, and what they are for.
want() {
    local program=$1 packages=$2 purpose=$3
    if PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null; then
        return
    fi
    say "installing $packages: $purpose"
    # shellcheck disable=SC2086 # several packages
    apt_install $packages || echo "cannot install $packages here; left out: $purpose"
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

make_venv() {
    local python
    python=$(find_python) || { apt_install python3 && python=$(find_python); } || {
        echo "no Python 3.11 or newer found; name one with PYTHON=..." >&2
        return 1
    }
    "$python" -m venv .venv || { apt_install python3-venv && "$python" -m venv --clear .venv; }
}

install_python_packages() {
    # A copy of pyproject.toml marks a finished installation, so a second run starts at once.
    if cmp -s pyproject.toml .venv/installed.toml; then
        return
    fi
    say "Python packages"
    [ -x .venv/bin/python ] || make_venv
    .venv/bin/python -m pip install --quiet --editable '.[dev]'
    cp pyproject.toml .venv/installed.toml
}

install_npm_packages() {
    local manifest folder command
    while read -r manifest; do
        folder=$(dirname "$manifest")
        if cmp -s "$manifest" "$folder/node_modules/installed.json"; then
            continue
        fi
        say "npm packages of $folder"
        command=install
        [ ! -f "$folder/package-lock.json" ] || command=ci
        if (cd "$folder" && npm "$command" --ignore-scripts --no-audit --no-fund --silent); then
            cp "$manifest" "$folder/node_modules/installed.json"
        else
            echo "cannot install them here; the tests that need them are left out"
        fi
    done < <(find conformance tests -name package.json -not -path '*/node_modules/*')
}

# What a Go adapter is made of, as one text: if it has not changed, neither has the program.
go_sources() { (cd "$1" && cat go.mod go.sum ./*.go "$OLDPWD"/conformance/adapter/kits/go/*); }

# What the tests of conformance/helpers/go need, and Toxiproxy with its command-line client for those of the proxy.
fetch_go_modules() {
    command -v go >/dev/null || return 0
    (cd conformance/helpers/go && go mod download) ||
        echo "cannot fetch the modules of conformance/helpers/go; its tests are left out"
    local program version
    for program in cli@v2.5.0 server@v2.12.0; do
        IFS=@ read -r program version <<<"$program"
        [ -x ".venv/bin/toxiproxy-$program" ] && continue
        if GOBIN="$PWD/.venv/bin" go install "github.com/Shopify/toxiproxy/v2/cmd/$program@$version"; then
            mv ".venv/bin/$program" ".venv/bin/toxiproxy-$program"
        else
            echo "cannot build toxiproxy-$program here; the tests that need it are left out"
        fi
    done
}

build_go_adapters() {
    command -v go >/dev/null || return 0
    local folder
    while read -r folder; do
        if go_sources "$folder" | cmp -s - "$folder/build/built-from"; then
            continue
        fi
        say "Go modules and program of $folder"
        if (cd "$folder" && go build -buildvcs=false -o build/adapter .); then
            go_sources "$folder" >"$folder/build/built-from"
        else
            echo "cannot build it here; the tests that need it are left out"
        fi
    done < <(find conformance/adapters -name go.mod -exec dirname {} +)
}

# What a Java adapter is made of, as one text.
java_sources() { (cd "$1" && cat pom.xml src/*.java "$OLDPWD"/conformance/adapter/kits/java/*); }

build_java_adapters() {
    command -v mvn >/dev/null || return 0
    local folder
    while read -r folder; do
        if java_sources "$folder" | cmp -s - "$folder/build/built-from"; then
            continue
        fi
        say "Maven packages and classes of $folder"
        if (cd "$folder" && mvn --quiet --batch-mode compile); then
            java_sources "$folder" >"$folder/build/built-from"
        else
            echo "cannot build it here; the tests that need it are left out"
        fi
    done < <(find conformance/adapters -name pom.xml -exec dirname {} +)
}

# What a program in Rust is made of, as one text.
rust_sources() { (cd "$1" && cat Cargo.toml Cargo.lock src/*.rs "$OLDPWD"/conformance/adapter/kits/rust/*); }

# Whether there is a cargo that reads the lock files; Debian 12's does not. That of rustup looks for its tool
# chains below HOME, wherever the user's own home is.
find_cargo() {
    local home
    home=$(getent passwd "$(id -u)" | cut -d: -f6)
    [ ! -d "$home/.rustup" ] || export RUSTUP_HOME="${RUSTUP_HOME:-$home/.rustup}"
    [ ! -x "$home/.cargo/bin/cargo" ] || PATH="$home/.cargo/bin:$PATH"
    printf '1.78\n%s\n' "$(cargo --version 2>/dev/null | cut -d' ' -f2)" | sort --version-sort --check=quiet
}

# Below the folders that are named.
build_rust_programs() {
    find_cargo || {
        echo "no cargo 1.78 or newer here; left out: Rust clients"
        return 0
    }
    local folder
    while read -r folder; do
        if rust_sources "$folder" | cmp -s - "$folder/build/built-from"; then
            continue
        fi
        say "crates and program of $folder"
        if (cd "$folder" && cargo build --quiet --locked --target-dir build); then
            rust_sources "$folder" >"$folder/build/built-from"
        else
            echo "cannot build it here; the tests that need it are left out"
        fi
    done < <(find "$@" -name Cargo.toml -not -path '*/build/*' -exec dirname {} +)
}
