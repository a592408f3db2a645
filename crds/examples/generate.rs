//! Writes `crds/yaml` anew from the types. The drift test names this command when the two differ.

use std::{error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("yaml");
    fs::create_dir_all(&folder)?;
    for (name, yaml) in fencepost_crds::crd_files()? {
        fs::write(folder.join(name), yaml)?;
    }
    Ok(())
}
