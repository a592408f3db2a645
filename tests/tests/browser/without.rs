//! Without JavaScript the pages are useful; with it, the address bar holds the view and Back works.

use fencepost_tests::faulty::FaultyServer;
use serde_json::json;

use crate::{
    chromium::Chromium,
    world::{LAZY, World, server, watch},
};

async fn world(faulty: &FaultyServer) -> World {
    let uris = ["config://alpha", "config://beta"];
    for uri in uris {
        faulty.set(uri, "one");
    }
    let world = World::start(&[server(&faulty.url()), watch("all", &uris, LAZY)].concat()).await;
    for uri in uris {
        world.content(uri, "one").await;
    }
    world
}

#[tokio::test]
async fn pages_are_useful_without_scripts() {
    let faulty = FaultyServer::start().await;
    let world = world(&faulty).await;
    let chromium = Chromium::start().await;
    chromium
        .devtools(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": true}),
        )
        .await;
    let shown = async |path: &str| {
        chromium.open(&format!("{}{path}", world.base)).await;
        chromium.driver.source().await.unwrap()
    };
    let resources = shown("/resources?q=alp").await;
    assert!(resources.contains("config://alpha") && !resources.contains("config://beta"));
    let id = world.find("config://alpha").await.unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let resource = shown(&format!("/resources/{id}")).await;
    for word in ["Watermark", "Stale after", "accepted", "<svg"] {
        assert!(resource.contains(word), "the page does not show {word}");
    }
    chromium.end().await;
}

#[tokio::test]
async fn the_address_bar_holds_the_view_and_back_works() {
    let faulty = FaultyServer::start().await;
    let world = world(&faulty).await;
    let chromium = Chromium::start().await;
    chromium
        .open_live(&format!("{}/resources", world.base))
        .await;
    // `/` goes to the search from anywhere.
    chromium
        .eval("document.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}))")
        .await;
    chromium
        .until(
            "the search has the focus",
            "return document.activeElement?.name ?? null",
            |name| *name == "q",
        )
        .await;
    chromium
        .eval("const q = document.activeElement; q.value = 'beta'; q.form.requestSubmit()")
        .await;
    let address = "return location.search";
    chromium
        .until("the filter in the address", address, |search| {
            search.as_str().unwrap().contains("q=beta")
        })
        .await;
    let listed = "return [...document.querySelectorAll('a')].map(a => a.textContent).filter(t => t.startsWith('config://')).join()";
    chromium
        .until("only the found one", listed, |text| {
            *text == "config://beta"
        })
        .await;
    chromium.driver.back().await.unwrap();
    chromium
        .until("no filter again", address, |search| {
            !search.as_str().unwrap().contains("beta")
        })
        .await;
    chromium
        .until("both again", listed, |text| {
            text.as_str().unwrap().contains("config://alpha")
        })
        .await;
    // A range is a link, so the address holds it and Back leaves it.
    chromium.open_live(&world.base).await;
    chromium
        .eval("[...document.querySelectorAll('.page-head a')].find(a => a.textContent === '6h').click()")
        .await;
    let range = "return [location.search, document.querySelector('.page-head a[aria-current]')?.textContent].join()";
    chromium
        .until("the range in the address", range, |is| {
            *is == "?range=6h,6h"
        })
        .await;
    chromium.driver.back().await.unwrap();
    chromium
        .until("the range before", range, |is| *is == ",1h")
        .await;
    assert_eq!(chromium.console_errors().await, Vec::<String>::new());
    chromium.end().await;
}
