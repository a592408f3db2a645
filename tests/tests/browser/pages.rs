//! Every page, wide and narrow, dark and light, over an empty, a quiet and a broken ledger.

use fencepost_tests::{
    faulty::{FaultyServer, ReadFault},
    receiver::{Answer, Receiver},
};

use crate::{
    chromium::Chromium,
    world::{LAZY, World, index, server, watch},
};

/// Looks at each page in each form; whatever is wrong is told together.
async fn look(world: &World, ledger: &str, pages: &[(&str, String)]) {
    look_but(world, ledger, pages, &[]).await;
}

/// The same, with words of the console that are meant to be there.
async fn look_but(world: &World, ledger: &str, pages: &[(&str, String)], meant: &[&str]) {
    let chromium = Chromium::start().await;
    let mut wrong = Vec::new();
    for width in [1440, 390] {
        for scheme in ["dark", "light"] {
            chromium.screen(width, scheme).await;
            for (name, path) in pages {
                let place = format!("{ledger}-{name}-{width}-{scheme}");
                chromium.open_live(&format!("{}{path}", world.base)).await;
                let mut found = chromium.misdrawn().await;
                found.extend(chromium.asked_elsewhere(&world.base).await);
                found.extend(chromium.inaccessible().await);
                let errors = chromium.console_errors().await;
                let unmeant = |error: &String| !meant.iter().any(|words| error.contains(words));
                found.extend(errors.into_iter().filter(unmeant));
                wrong.extend(found.into_iter().map(|what| format!("{place}: {what}")));
                chromium.picture(&place).await;
            }
        }
    }
    chromium.end().await;
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn lists() -> Vec<(&'static str, String)> {
    [
        ("overview", "/"),
        ("resources", "/resources"),
        ("servers", "/servers"),
        ("indexes", "/indexes"),
    ]
    .into_iter()
    .map(|(name, path)| (name, path.to_owned()))
    .collect()
}

#[tokio::test]
async fn an_empty_ledger_teaches() {
    let subject = "apiVersion: fencepost.dev/v1alpha1\nkind: MCPSubject\nmetadata: {name: nobody, namespace: agents}\nspec: {}\n";
    let world = World::start(subject).await;
    look(&world, "empty", &lists()).await;
    let page = world.answer("/").await.text().await.unwrap();
    assert!(
        page.contains("MCPServer") || page.contains("WatchedResource"),
        "it names no manifest"
    );
}

#[tokio::test]
async fn a_quiet_ledger() {
    let faulty = FaultyServer::start().await;
    let receiver = Receiver::start().await;
    let uris: Vec<String> = (0..60)
        .map(|n| format!("docs:///team/runbooks/a rather long name of a runbook {n}.md"))
        .collect();
    for uri in &uris {
        faulty.set_typed(uri, "text/markdown", "# A\n\none\n");
    }
    let names: Vec<&str> = uris.iter().map(String::as_str).collect();
    let world = World::start(
        &[
            server(&faulty.url()),
            watch("runbooks", &names, LAZY),
            index("rag", &receiver.url(), receiver.secret()),
        ]
        .concat(),
    )
    .await;
    for uri in &uris {
        world.content(uri, "# A\n\none\n").await;
    }
    faulty.set_typed(&uris[0], "text/markdown", "# A\n\ntwo\n");
    faulty.notify(&uris[0]);
    let first = world.content(&uris[0], "# A\n\ntwo\n").await;
    let mut pages = lists();
    pages.push((
        "resource",
        format!("/resources/{}", first["id"].as_str().unwrap()),
    ));
    look(&world, "quiet", &pages).await;
}

#[tokio::test]
async fn a_broken_ledger() {
    let faulty = FaultyServer::start().await;
    let receiver = Receiver::start().await;
    receiver.answer(Answer::Status(500));
    let eager = "{mode: Auto, maxStaleness: 2s, pollInterval: 1s}";
    for n in 0..6 {
        faulty.set(&format!("config://r/{n}"), "one");
    }
    let uris = [
        "config://r/0",
        "config://r/1",
        "config://r/2",
        "config://r/3",
        "config://r/4",
        "config://r/5",
    ];
    let manifests = [
        server(&faulty.url()),
        watch("all", &uris, eager),
        server("http://127.0.0.1:9/mcp").replace("name: server,", "name: away,"),
        watch("away", &["config://away"], LAZY)
            .replace("serverRef: {name: server}", "serverRef: {name: away}"),
        index("rag", &receiver.url(), receiver.secret()),
    ]
    .concat();
    let world = World::start(&manifests).await;
    for uri in uris {
        world.content(uri, "one").await;
    }
    faulty.fail_read(uris[0], Some(ReadFault::Status(500)));
    faulty.fail_read(uris[1], Some(ReadFault::Forbidden));
    faulty.remove(uris[2]);
    world
        .resource("a stale resource", uris[0], |r| r["stale"] == true)
        .await;
    let gone = world
        .resource("a missing one", uris[2], |r| r["state"] == "TOMBSTONED")
        .await;
    let mut pages = lists();
    let stale = world.find(uris[0]).await.unwrap();
    for (name, resource) in [("gone", &gone), ("stale", &stale)] {
        let id = resource["id"].as_str().unwrap();
        pages.push((name, format!("/resources/{id}")));
    }
    look(&world, "broken", &pages).await;
    let chromium = Chromium::start().await;
    let said = [
        ("/", "agents/away"),
        ("/", "Resources stale"),
        ("/", "Indexes behind"),
        ("/servers", "away"),
        ("/indexes", "500"),
    ];
    for (path, words) in said {
        chromium.open_live(&format!("{}{path}", world.base)).await;
        let shown = chromium.text().await;
        assert!(shown.contains(words), "{path} does not say {words}");
    }
    chromium.end().await;
}

#[tokio::test]
async fn reads_are_drawn_by_trigger() {
    let faulty = FaultyServer::start().await;
    faulty.set("config://polled", "one");
    let polled = watch(
        "polled",
        &["config://polled"],
        "{mode: Poll, maxStaleness: 5s, pollInterval: 1s}",
    );
    let world = World::start(&[server(&faulty.url()), polled].concat()).await;
    world.content("config://polled", "one").await;
    let chromium = Chromium::start().await;
    chromium
        .open_live(&format!("{}/?range=15m", world.base))
        .await;
    // The interactive chart has taken the sketch's place, and two samples or more span an area that the eye sees.
    let area = "return [...document.querySelectorAll('.stacked ._chartistry_series path')]\
                .map(path => path.getBBox()).some(box => box.width > 3 && box.height > 10)";
    chromium
        .until("polls drawn as an area", area, |seen| *seen == true)
        .await;
    assert_eq!(chromium.misdrawn().await, Vec::<String>::new());
    assert_eq!(chromium.console_errors().await, Vec::<String>::new());
    chromium.picture("reads-by-trigger").await;
    chromium.end().await;
}

#[tokio::test]
async fn what_is_not_there_is_404() {
    let faulty = FaultyServer::start().await;
    let world = World::start(&server(&faulty.url())).await;
    for path in [
        "/nothing",
        "/resources/00000000-0000-0000-0000-000000000000",
        "/resources/no-such-id",
        "/assets/fencepost-0.js",
    ] {
        assert_eq!(world.answer(path).await.status(), 404, "{path}");
    }
    let lost = [
        ("nothing", "/nothing".to_owned()),
        (
            "no-resource",
            "/resources/00000000-0000-0000-0000-000000000000".to_owned(),
        ),
    ];
    // The browser notes on its console that it was answered 404.
    look_but(&world, "lost", &lost, &["status of 404"]).await;
}
