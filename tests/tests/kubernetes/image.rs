//! The binary as the image runs it: nobody's user, a root file system that cannot be written, no mounts but those of the chart.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use fencepost_tests::{
    binary::{self, Fencepost},
    faulty::FaultyServer,
};

use crate::world::{LAZY, World, watch};

/// The user that the Dockerfile and the chart name.
const USER: &str = "65532:65532";

/// Makes a root of what the image has: the binary, the C library, certificates; and, as a pod has it, the
/// service account. Everything is read-only before the binary starts.
const SCRIPT: &str = r#"
set -eu
binary=$1 root=$2 account=$3 service=$4; shift 4
mount -t tmpfs -o mode=755 tmpfs "$root"
mkdir -p "$root/usr/local/bin" "$root/etc/ssl/certs" "$root/dev" "$root/proc" "$root/var/run/secrets/kubernetes.io/serviceaccount"
cp "$binary" "$root/usr/local/bin/fencepost"
ldd "$binary" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
echo "127.0.0.1 localhost $service" > "$root/etc/hosts"
echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
echo 'nonroot:x:65532:65532:nonroot:/:/none' > "$root/etc/passwd"
cp "$account"/* "$root/var/run/secrets/kubernetes.io/serviceaccount/"
for device in null urandom; do : > "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
mount -t proc -o ro proc "$root/proc"
mount -o remount,ro "$root"
exec chroot --userspec=65532:65532 "$root" /usr/local/bin/fencepost "$@"
"#;

#[tokio::test]
async fn it_runs_as_nobody_on_a_root_that_cannot_be_written() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "this test makes mounts of its own; run it as root (sudo make kubernetes)"
    );
    let faulty = FaultyServer::start().await;
    faulty.set("config://limits", "one");
    let world = World::start("image").await;
    let folder = tempfile::tempdir().unwrap();
    let (root, account) = (folder.path().join("root"), folder.path().join("account"));
    fs::create_dir_all(&root).unwrap();
    fs::create_dir_all(&account).unwrap();
    let token = world.kubectl(&["create", "token", "fencepost"]).await;
    write(&account.join("token"), token.trim().as_bytes());
    write(&account.join("ca.crt"), &world.cluster.get().certificate());
    write(
        &account.join("namespace"),
        world.namespace.name().as_bytes(),
    );
    let host = format!("config.{}.svc.cluster.local", world.namespace.name());
    let port = faulty.addr().port();
    let address = url::Url::parse(world.cluster.get().url()).unwrap();

    let mut command = Command::new("unshare");
    command
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            SCRIPT,
            "sh",
        ])
        .arg(binary::path().canonicalize().unwrap())
        .args([&root, &account])
        .arg(&host)
        .args([
            "operator",
            "--listen",
            "127.0.0.1:0",
            "--allow-loopback",
            "--access",
            "open",
        ])
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("FENCEPOST_DATABASE_URL", &world.database.url)
        .env("FENCEPOST_NAMESPACE", world.namespace.name())
        .env("POD_NAMESPACE", world.namespace.name())
        .env("POD_NAME", "fencepost-0")
        // As every pod finds its API server.
        .env("KUBERNETES_SERVICE_HOST", address.host_str().unwrap())
        .env(
            "KUBERNETES_SERVICE_PORT",
            address.port().unwrap().to_string(),
        );
    let mut process = Fencepost::through(&mut command);
    let base = process.base_url().await;

    // It is who it should be, and cannot write where it stands.
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let uid = status
        .lines()
        .find(|line| line.starts_with("Uid:"))
        .unwrap();
    assert!(
        uid.split_whitespace()
            .skip(1)
            .all(|id| USER.starts_with(id)),
        "{uid}"
    );
    let mounts = fs::read_to_string(format!("/proc/{}/mounts", process.pid())).unwrap();
    let at_root = mounts
        .lines()
        .find(|line| line.split(' ').nth(1) == Some("/"))
        .unwrap();
    assert!(
        at_root.split(' ').nth(3).unwrap().starts_with("ro"),
        "{at_root}"
    );

    // Named by a Service, whose name a pod's resolver would know as this root's file of hosts does.
    world
        .apply(&format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: config}}\nspec: {{ports: [{{port: {port}}}]}}\n---\n\
             apiVersion: fencepost.dev/v1alpha1\nkind: MCPServer\nmetadata: {{name: server}}\n\
             spec: {{service: {{name: config, port: {port}, path: /mcp}}}}\n---\n{}",
            watch("limits", &["config://limits"], LAZY)
        ))
        .await;
    world.wait_for("condition=Ready", "watch/limits").await;
    let ready = reqwest::get(format!("{base}/readyz")).await.unwrap();
    assert_eq!(ready.status(), 200);
    let page = reqwest::get(&base).await.unwrap();
    assert_eq!(page.status(), 200, "the dashboard is inside");
    let end = process.terminate().await;
    assert!(end.success(), "{end}");
}

/// Readable by the user that the binary runs as, as the kubelet makes it.
fn write(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}
