# The parts of the checks, and the table of their times. `.ci/run` and `.ci/full` source this file and choose parts.
# shellcheck shell=bash

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

export RUSTFLAGS="-D warnings"
export RUSTDOCFLAGS="-D warnings"
# Nothing is compiled twice here, so what makes the next compilation faster would only take time.
export CARGO_INCREMENTAL=0
# Tests of random inputs draw the same inputs in every run, so that a change is not refused for an older defect. Without this
# variable, each run draws new ones.
export PROPTEST_RNG_SEED=1
# Tests wait for disks and for each other. With as many as there are cores, the cores would be idle for a third of the time; on a
# machine with other work, these many take half as long as half as many.
RUST_TEST_THREADS=$((4 * $(nproc)))
export RUST_TEST_THREADS

# --- parts ---

format() { cargo fmt --check; }

# One set of features, that of the tests: cargo then checks each dependency once, also for `docs`.
lint() {
    cargo clippy --locked --all-targets
    cargo clippy --locked --test '*'
}

# What `lint` leaves out: the program as it is packaged, and what only a comparison needs.
lint_features() {
    cargo clippy --locked --all-targets --features jemalloc
    cargo check --locked --bench ratios --features cache-metrics,sqlite-peer
}

docs() { cargo doc --locked --no-deps --document-private-items; }

# Compiles all tests at once, so that one is compiled while another is linked.
build() { cargo test --locked --no-run --lib --bins --test '*'; }

tests() { cargo test --locked; }

# The tests of a shared database, in the store and over the API.
shared_database() {
    cargo test --locked --lib -- --ignored
    cargo test --locked --test it -- --ignored moving:: nodes::
}

# All tests of the API on PostgreSQL, except those of the file itself.
tests_on_postgres() {
    mapfile -t only_on_files <tests/it/only_on_files.txt
    STEWARD_TEST_ENGINE=postgres cargo test --locked --test it -- "${only_on_files[@]/#/--skip=}"
}

system() { cargo test --locked --test system; }

chaos() { cargo test --locked --test chaos -- --skip nodes::; }

# The nodes of a shared database have the machine to themselves.
chaos_nodes() { cargo test --locked --test chaos -- nodes::; }

# Sets `STEWARD` to the program as the tests build it. `cargo build` would compile it again, because it leaves out the features
# of crates that only the tests need.
program() {
    cargo test --locked --no-run --test system
    export STEWARD="$PWD/target/debug/steward"
}

# Three nodes behind HAProxy, of which one is killed, then each is restarted.
drill() {
    program
    packaging/cluster/drill
    packaging/cluster/drill --restart
}

failover() {
    program
    .ci/failover/run
}

contract() {
    program
    .ci/contract/run "$@"
}

# The examples of docs/testing.md.
testing_page() {
    program
    .ci/contract/install
    target/contract/bin/python .ci/testing/page.py "$STEWARD" </dev/null
}

# The files of a release for this machine, each installed in a clean place.
release() {
    packaging/release "$(uname -m)"
    packaging/try
}

examples() {
    cargo run --locked --quiet --example quickstart
    cargo run --locked --quiet --example embedded
    cargo run --locked --quiet --example soak -- --minutes 0.2
}

instructions() { cargo bench --locked --features jemalloc --profile instructions --bench instructions; }

licenses() {
    command -v cargo-deny >/dev/null || cargo install --locked --quiet cargo-deny@0.20.2
    cargo deny check bans licenses sources
}

# --- tools ---

apt_install() {
    [ $# = 0 ] && return
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "$@"
}

# What the first compilation needs. The C compiler links Rust.
install_compiler() {
    command -v cc >/dev/null || apt_install gcc libc6-dev
    rustup component add rustfmt clippy >/dev/null 2>&1 || true
}

# What the parts need besides, by its Debian package. CONTRIBUTING.md says what for.
install_tools() {
    local missing=()
    command -v make >/dev/null || missing+=(make)
    command -v curl >/dev/null || missing+=(curl)
    command -v npm >/dev/null || missing+=(nodejs npm)
    command -v cpio >/dev/null || missing+=(cpio)
    command -v rpm2cpio >/dev/null || missing+=(rpm2cpio)
    command -v umoci >/dev/null || missing+=(umoci)
    command -v chromium >/dev/null && command -v chromedriver >/dev/null || missing+=(chromium chromium-driver)
    command -v systemd-analyze >/dev/null || missing+=(systemd)
    command -v groff >/dev/null || missing+=(groff-base)
    command -v valgrind >/dev/null || missing+=(valgrind)
    command -v haproxy >/dev/null || missing+=(haproxy)
    python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3 python3-venv)
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || missing+=(postgresql)
    apt_install "${missing[@]}"
    .ci/contract/install
}

# Waits for the tools, which are installed beside the first compilation.
tools() {
    tail --pid="$installing" -n +1 -f "$log"
    grep -qx 'exit code 0' "$log"
}

# --- table ---

rows=()
failed=0

# Runs a part, and adds a row to the table. The parts after a failed one run too, so that one run names all that is wrong.
part() {
    local name=$1 start=$SECONDS code
    printf '\n== %s\n' "$name"
    (set -ex && "${name//-/_}")
    code=$?
    [ $code = 0 ] || failed=1
    rows+=("$name $((SECONDS - start)) $([ $code = 0 ] && echo ok || echo "FAILED ($code)")")
}

table() {
    local row name seconds result
    rows+=("sum $SECONDS $([ $failed = 0 ] && echo ok || echo FAILED)")
    printf '\n%-20s %7s  %s\n' part minutes result
    for row in "${rows[@]}"; do
        read -r name seconds result <<<"$row"
        printf '%-20s %4d:%02d  %s\n' "$name" $((seconds / 60)) $((seconds % 60)) "$result"
    done
}

# Runs the parts with these names, then prints the table, also if it is interrupted.
main() {
    log=$(mktemp)
    trap 'table; rm -f "$log"' EXIT
    trap 'failed=1; exit 130' INT TERM
    install_compiler
    (
        set -ex
        trap 'echo "exit code $?"' EXIT
        install_tools
    ) >"$log" 2>&1 &
    installing=$!
    for name in "$@"; do
        part "$name"
    done
    exit $failed
}
