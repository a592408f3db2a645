//! A new file in the migrations folder has to rebuild the crate that carries them.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
