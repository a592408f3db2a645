//! References: to other operators' objects, to Services, and across namespaces with a grant only.

use fencepost_tests::faulty::FaultyServer;

use crate::world::{Cluster, LAZY, SOON, World, server, watch};

const URI: &str = "config://limits";

/// Definitions with no more in them than what is read, for kinds of others.
fn definition(group: &str, version: &str, kind: &str, plural: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.{group}, annotations: {{api-approved.kubernetes.io: unapproved}}}}\n\
         spec:\n  group: {group}\n  scope: Namespaced\n  names: {{kind: {kind}, plural: {plural}}}\n  versions:\n  - name: {version}\n    served: true\n    storage: true\n    subresources: {{status: {{}}}}\n    \
         schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n---\n"
    )
}

async fn define(cluster: &Cluster, group: &str, version: &str, kind: &str, plural: &str) {
    let cluster = cluster.get();
    cluster
        .kubectl_with(
            ["apply", "--server-side", "-f", "-"],
            &definition(group, version, kind, plural),
        )
        .await
        .ok();
    let name = format!("crd/{plural}.{group}");
    cluster
        .kubectl([
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            &name,
        ])
        .await
        .ok();
}

#[tokio::test]
async fn another_operators_object_gives_the_address_once_it_publishes_one() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("publisher").await;
    for (group, version, patch) in [
        (
            "mcp.x-k8s.io",
            "v1beta1",
            format!(
                "{{\"status\":{{\"address\":{{\"url\":\"{}\"}}}}}}",
                faulty.url()
            ),
        ),
        (
            "toolhive.stacklok.dev",
            "v1alpha1",
            format!("{{\"status\":{{\"url\":\"{}\"}}}}", faulty.url()),
        ),
    ] {
        define(&world.cluster, group, version, "MCPServer", "mcpservers").await;
        let name = format!("of-{}", group.split('.').next().unwrap());
        world
            .apply(&format!(
                "apiVersion: {group}/{version}\nkind: MCPServer\nmetadata: {{name: theirs}}\n---\n\
                 apiVersion: fencepost.dev/v1alpha1\nkind: MCPServer\nmetadata: {{name: {name}}}\n\
                 spec: {{serverRef: {{apiVersion: {group}/{version}, kind: MCPServer, name: theirs}}}}\n---\n\
                 apiVersion: fencepost.dev/v1alpha1\nkind: WatchedResource\nmetadata: {{name: {name}}}\n\
                 spec: {{serverRef: {{name: {name}}}, uris: [\"{URI}\"], refresh: {LAZY}}}\n"
            ))
            .await;
        let operator = world.ready("a").await;
        let object = format!("mcpserver.fencepost.dev/{name}");
        let ready = world.ready_reason(&object, "AddressNotPublished").await;
        assert!(
            ready["message"]
                .as_str()
                .unwrap()
                .contains("publishes no address yet"),
            "{ready}"
        );
        let theirs = format!("mcpservers.{group}/theirs");
        world
            .kubectl(&[
                "patch",
                &theirs,
                "--subresource=status",
                "--type=merge",
                "-p",
                &patch,
            ])
            .await;
        world.ready_reason(&object, "Connected").await;
        world
            .wait_for("condition=Ready", &format!("watch/{name}"))
            .await;
        drop(operator);
    }
}

#[tokio::test]
async fn what_cannot_be_followed_says_why() {
    let world = World::start("lost").await;
    let _operator = world.ready("a").await;
    world
        .apply(
            "apiVersion: fencepost.dev/v1alpha1\nkind: MCPServer\nmetadata: {name: unknown}\n\
             spec: {serverRef: {apiVersion: example.com/v1, kind: Thing, name: x}}\n---\n\
             apiVersion: fencepost.dev/v1alpha1\nkind: MCPServer\nmetadata: {name: service}\n\
             spec: {service: {name: nowhere, port: 8080}}\n---\n\
             apiVersion: v1\nkind: Service\nmetadata: {name: config}\nspec: {ports: [{port: 8080}]}\n---\n\
             apiVersion: fencepost.dev/v1alpha1\nkind: MCPServer\nmetadata: {name: port}\n\
             spec: {service: {name: config, port: 9090}}\n---\n\
             apiVersion: fencepost.dev/v1alpha1\nkind: WatchedResource\nmetadata: {name: lost}\n\
             spec: {serverRef: {name: nobody}, uris: [\"a:b\"]}\n",
        )
        .await;
    for (object, reason, part) in [
        (
            "mcpserver/unknown",
            "AddressUnknown",
            "give url or service instead",
        ),
        (
            "mcpserver/service",
            "ServiceNotFound",
            "there is no Service",
        ),
        (
            "mcpserver/port",
            "ServiceNotFound",
            "give one of its ports: 8080",
        ),
        ("watch/lost", "ServerNotFound", "there are: "),
    ] {
        let ready = world.ready_reason(object, reason).await;
        assert!(ready["message"].as_str().unwrap().contains(part), "{ready}");
        let stalled = world.condition(object, "Stalled", |c| c.is_some()).await;
        assert_eq!(stalled.unwrap()["status"], "True");
    }
    // And is taken up when it can be.
    let port = "{\"spec\":{\"service\":{\"name\":\"config\",\"port\":8080}}}";
    world
        .kubectl(&["patch", "mcpserver/port", "--type=merge", "-p", port])
        .await;
    let idle = world.ready_reason("mcpserver/port", "Idle").await;
    assert_eq!(idle["status"], "True");
}

/// Two namespaces, one operator that watches both.
#[tokio::test]
async fn across_namespaces_only_with_a_grant_and_nothing_is_revealed() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("here").await;
    define(
        &world.cluster,
        "gateway.networking.k8s.io",
        "v1beta1",
        "ReferenceGrant",
        "referencegrants",
    )
    .await;
    let there = world.cluster.get().namespace("there").await;
    let (here, there_name) = (world.namespace.name(), there.name());
    let operator = world.watching_also(&there).await;
    operator.is_ready().await;
    there.apply(&server(&faulty.url())).await.ok();
    let across = |name: &str, target: &str| {
        watch(name, &[URI], LAZY).replace(
            "serverRef: {name: server}",
            &format!("serverRef: {{name: {target}, namespace: {there_name}}}"),
        )
    };
    world
        .apply(&(across("exists", "server") + &across("not-there", "nobody")))
        .await;
    let exists = world
        .ready_reason("watch/exists", "ReferenceNotGranted")
        .await;
    let not_there = world
        .ready_reason("watch/not-there", "ReferenceNotGranted")
        .await;
    let told = |condition: &serde_json::Value| {
        condition["message"]
            .as_str()
            .unwrap()
            .replace("/server ", "/X ")
            .replace("/nobody ", "/X ")
    };
    assert_eq!(
        told(&exists),
        told(&not_there),
        "the words must not tell whether it exists"
    );

    there
        .apply(&format!(
            "apiVersion: gateway.networking.k8s.io/v1beta1\nkind: ReferenceGrant\nmetadata: {{name: let-in}}\n\
             spec:\n  from: [{{group: fencepost.dev, kind: WatchedResource, namespace: {here}}}]\n  \
             to: [{{group: fencepost.dev, kind: MCPServer, name: server}}]\n"
        ))
        .await
        .ok();
    world.ready_reason("watch/exists", "Converged").await;
    world
        .ready_reason("watch/not-there", "ReferenceNotGranted")
        .await;

    there
        .kubectl(["delete", "referencegrants/let-in"])
        .await
        .ok();
    world
        .ready_reason("watch/exists", "ReferenceNotGranted")
        .await;
    fencepost_tests::wait::until("closed", SOON, async || match faulty.subscribers_of(URI) {
        0 => Ok(()),
        open => Err(open),
    })
    .await;
}
