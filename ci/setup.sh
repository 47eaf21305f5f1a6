# Setting a machine up. Read it with `source`, in the project's root, and call what the job needs:
#
#   setup_python      what lint, types and most tests need: Python packages, none of which is compiled here
#   setup_spark       PySpark, and Java for it
#   setup_servers     the real RabbitMQ, NATS, Redis and Mosquitto
#   setup_browser     Chromium and Playwright
#   setup_clients     the bundled clients in JavaScript, Go and Java, and rbfly; with --rust that in Rust too, and
#                     what reads its coverage
#   setup_helpers     what the packages for other languages are tested with, Toxiproxy and faketime; --rust as well
#   setup_all         all of these, and the documentation's packages; --rust as well
#
# Each says what it installs and why, and does it once: a second run starts at once. Only setup_python has to
# succeed. What the others cannot have here they say; the tests that need it are left out, and the rest goes on.

# The lanes start thousands of short programs in Python, and each would compile everything anew.
unset PYTHONDONTWRITEBYTECODE

say() { printf '\n== %s\n' "$*"; }

# Programs that fetch something give up soon where nobody answers.
export npm_config_fetch_retries=1 npm_config_fetch_retry_mintimeout=1000 npm_config_fetch_timeout=60000
export CARGO_NET_RETRY=1
readonly quick_maven=(-Dmaven.wagon.http.retryHandler.count=1 -Daether.connector.http.retryHandler.count=1
    -Daether.connector.connectTimeout=10000)

# What cannot be had here, and what is left out without it.
give_up() { echo "cannot install $1 here; left out: $2"; }

# Install Debian packages; fails quietly where that cannot be done.
apt_install() {
    command -v apt-get >/dev/null || return 1
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null || return 1
        root=(sudo)
    fi
    [ -n "${apt_updated:-}" ] || "${root[@]}" apt-get update -qq || return 1
    apt_updated=yes
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
    apt_install $packages || give_up "$packages" "$purpose"
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

# What the fakes and the plugin are tried on.
readonly python_versions="3.11 3.12 3.13 3.14"

# Those of them that are on this machine, a version and a program in each line: on the PATH, of pyenv (which does
# not show all that it has), or fetched by uv.
found_pythons() {
    local version found
    for version in $python_versions; do
        for found in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python \
            "${XDG_DATA_HOME:-$HOME/.local/share}"/uv/python/cpython-"$version".*/bin/python; do
            if "$found" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null; then
                echo "$version $found"
                break
            fi
        done
    done
}

make_venv() {
    local python
    python=$(find_python) || { apt_install python3 && python=$(find_python); } || {
        echo "no Python 3.11 or newer found; name one with PYTHON=..." >&2
        return 1
    }
    "$python" -m venv .venv || { apt_install python3-venv && "$python" -m venv --clear .venv; }
}

# What pyproject.toml says about packages, and not about tools; and their versions.
python_packages() {
    sed '/^\[tool\.pytest/,$d' pyproject.toml
    cat ci/constraints.txt
}

# Make sure of one of its extras; a copy marks a finished installation.
install_extra() {
    local extra=$1 purpose=$2
    if python_packages | cmp -s - ".venv/installed-$extra.toml"; then
        return
    fi
    say "installing Python packages ($extra): $purpose"
    [ -x .venv/bin/python ] || make_venv || return
    pip_install --editable ".[$extra]" || return
    python_packages >".venv/installed-$extra.toml"
}

# uv takes half of pip's processor time or less, but does not read pip's settings: where pip finds packages elsewhere,
# pip has to.
pip_install() {
    [ -x .venv/bin/uv ] || .venv/bin/python -m pip install --quiet --no-compile uv || return
    .venv/bin/uv pip install --quiet --python .venv/bin/python --constraint ci/constraints.txt "$@" ||
        .venv/bin/python -m pip install --quiet --no-compile --constraint ci/constraints.txt "$@"
}

setup_python() { install_extra test "lint, types and tests"; }

setup_spark() {
    install_extra spark "analysis on Spark (400 MB)" || give_up "PySpark" "analysis on Spark"
    want java openjdk-17-jre-headless "Spark"
}

setup_servers() {
    want rabbitmq-server rabbitmq-server "comparison with the real RabbitMQ"
    want nats-server nats-server "comparison with the real NATS server"
    want redis-server redis-server "comparison with the real Redis"
    want mosquitto mosquitto "comparison with the real Mosquitto"
}

setup_browser() {
    install_extra browser "the report and clients in Chromium" || give_up "Playwright" "the report in Chromium"
    want chromium chromium "the report and the browser client of Narconi"
}

setup_clients() {
    install_extra compiled "rbfly, a client of RabbitMQ Stream; it takes a compiler" || give_up rbfly "the client rbfly"
    want npm "nodejs npm" "JavaScript clients"
    want go golang "Go clients"
    want mvn "default-jdk-headless maven" "Java clients"
    install_npm_packages
    build_go_adapters
    build_java_adapters
    fetch_jacoco
    [ "${1:-}" != --rust ] || build_rust_programs conformance/clients/adapters
    [ "${1:-}" != --rust ] || want_llvm
}

setup_helpers() {
    want go golang "the packages for Go and Toxiproxy"
    fetch_go_modules
    want tshark tshark "the page on journals in Wireshark"
    want faketime faketime "fakes on a machine whose clock jumps"
}

setup_all() {
    setup_servers
    setup_spark
    setup_browser
    setup_clients "$@"
    setup_helpers "$@"
    install_extra docs "the documentation" || give_up "MkDocs" "the documentation"
}

install_npm_packages() {
    local manifest folder command
    while read -r manifest; do
        folder=$(dirname "$manifest")
        if cmp -s "$manifest" "$folder/node_modules/installed.json"; then
            continue
        fi
        say "installing npm packages: JavaScript of $folder"
        command=install
        [ ! -f "$folder/package-lock.json" ] || command=ci
        if (cd "$folder" && npm "$command" --ignore-scripts --no-audit --no-fund --silent); then
            cp "$manifest" "$folder/node_modules/installed.json"
        else
            give_up "npm packages" "what needs $folder"
        fi
    done < <(find conformance tests -name package.json -not -path '*/node_modules/*')
}

# What a Go adapter is made of, as one text: if it has not changed, neither has the program.
go_sources() { (cd "$1" && cat go.mod go.sum ./*.go "$OLDPWD"/conformance/clients/adapter/kits/go/*); }

# What the tests of conformance/helpers/go need, and Toxiproxy with its command-line client for those of the proxy.
fetch_go_modules() {
    command -v go >/dev/null || return 0
    (cd conformance/helpers/go && go mod download) ||
        give_up "Go modules" "the tests of conformance/helpers/go"
    local program version
    for program in cli@v2.5.0 server@v2.12.0; do
        IFS=@ read -r program version <<<"$program"
        [ -x ".venv/bin/toxiproxy-$program" ] && continue
        say "building toxiproxy-$program: comparison with the real Toxiproxy"
        if GOBIN="$PWD/.venv/bin" go install "github.com/Shopify/toxiproxy/v2/cmd/$program@$version"; then
            mv ".venv/bin/$program" ".venv/bin/toxiproxy-$program"
        else
            give_up "toxiproxy-$program" "comparison with the real Toxiproxy"
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
        say "fetching Go modules, building a client: $folder"
        if (cd "$folder" && go build -buildvcs=false -o build/adapter .); then
            go_sources "$folder" >"$folder/build/built-from"
        else
            give_up "its packages" "what needs $folder"
        fi
    done < <(find conformance/clients/adapters -name go.mod -exec dirname {} +)
}

# What a Java adapter is made of, as one text.
java_sources() { (cd "$1" && cat pom.xml lockfile.json src/*.java "$OLDPWD"/conformance/clients/adapter/kits/java/*); }

build_java_adapters() {
    command -v mvn >/dev/null || return 0
    local folder
    while read -r folder; do
        if java_sources "$folder" | cmp -s - "$folder/build/built-from"; then
            continue
        fi
        say "fetching Maven packages, compiling a client: $folder"
        if (cd "$folder" && mvn --quiet --batch-mode "${quick_maven[@]}" compile); then
            java_sources "$folder" >"$folder/build/built-from"
        else
            give_up "its packages" "what needs $folder"
        fi
    done < <(find conformance/clients/adapters -name pom.xml -exec dirname {} +)
}

# What measures Java, once; it lies in the cache of versions.
fetch_jacoco() {
    command -v mvn >/dev/null || return 0
    .venv/bin/python -c 'from conformance.coverage.jacoco import programs; programs()' ||
        give_up "JaCoCo" "coverage of clients in Java"
}

# What a program in Rust is made of, as one text.
rust_sources() { (cd "$1" && cat Cargo.toml Cargo.lock src/*.rs "$OLDPWD"/conformance/clients/adapter/kits/rust/*); }

# Whether there is a cargo that reads the lock files; Debian 12's does not. That of rustup looks for its tool
# chains below HOME, wherever the user's own home is.
find_cargo() {
    local home
    home=$(getent passwd "$(id -u)" | cut -d: -f6)
    [ ! -d "$home/.rustup" ] || export RUSTUP_HOME="${RUSTUP_HOME:-$home/.rustup}"
    [ ! -x "$home/.cargo/bin/cargo" ] || PATH="$home/.cargo/bin:$PATH"
    printf '1.78\n%s\n' "$(cargo --version 2>/dev/null | cut -d' ' -f2)" | sort --version-sort --check=quiet
}

# What reads the coverage of a program in Rust: of the LLVM that the compiler has, no other reads it.
want_llvm() {
    find_cargo || return 0
    local major own
    major=$(rustc --version --verbose | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    own=$(rustc --print sysroot)/lib/rustlib/$(rustc --version --verbose | sed -n 's/^host: //p')/bin
    [ -x "$own/llvm-cov" ] || want "llvm-cov-$major" "llvm-$major" "coverage of clients in Rust"
}

# Below the folders that are named.
build_rust_programs() {
    find_cargo || {
        give_up "cargo 1.78 or newer" "Rust clients"
        return 0
    }
    local folder
    while read -r folder; do
        if rust_sources "$folder" | cmp -s - "$folder/build/built-from"; then
            continue
        fi
        say "fetching crates, building a client: $folder (minutes)"
        if (cd "$folder" && cargo build --quiet --locked --target-dir build); then
            rust_sources "$folder" >"$folder/build/built-from"
        else
            give_up "its packages" "what needs $folder"
        fi
    done < <(find "$@" -name Cargo.toml -not -path '*/build/*' -exec dirname {} +)
}
