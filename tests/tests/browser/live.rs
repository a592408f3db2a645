//! Live pages: a change shows without a reload, a cut is said and mended, markup stays text.

use std::time::Duration;

use fencepost_tests::faulty::FaultyServer;
use serde_json::json;

use crate::{
    chromium::{Chromium, INDICATOR},
    world::{LAZY, World, server, watch},
};

const URI: &str = "config://limits";

#[tokio::test]
async fn a_change_shows_on_the_open_page_and_a_cut_is_mended() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut world = World::start_on(
        &[server(&faulty.url()), watch("limits", &[URI], LAZY)].concat(),
        port,
    )
    .await;
    let before = world.content(URI, "one").await;
    let chromium = Chromium::start().await;
    // Another time zone and locale than the server's: hydration must not care.
    chromium
        .devtools(
            "Emulation.setTimezoneOverride",
            json!({"timezoneId": "Asia/Kolkata"}),
        )
        .await;
    chromium
        .open_live(&format!(
            "{}/resources/{}",
            world.base,
            before["id"].as_str().unwrap()
        ))
        .await;
    chromium.eval("window.never_reloaded = true").await;

    faulty.change(URI, "two");
    let after = world.content(URI, "two").await;
    let digest = after["digest"].as_str().unwrap()[7..15].to_owned();
    let shown = "return document.body.innerText";
    chromium
        .until("the new digest", shown, |text| {
            text.as_str().unwrap().contains(&digest)
        })
        .await;

    assert!(world.fencepost.terminate().await.success());
    let gone = chrono::Utc::now();
    chromium
        .until("that it is cut", INDICATOR, |word| *word == "reconnecting")
        .await;
    chromium
        .until("since when it is old", INDICATOR, |word| {
            word.as_str()
                .is_some_and(|word| word.starts_with("stale since"))
        })
        .await;
    // Old since the stream went, which is not when the page was opened.
    let title = chromium
        .eval("return document.querySelector('.live').title")
        .await;
    let since = title
        .as_str()
        .and_then(|title| title.split_once(" until "))
        .and_then(|(_, at)| {
            chrono::NaiveDateTime::parse_from_str(at, "%Y-%m-%d %H:%M:%S%.3f UTC.").ok()
        })
        .unwrap_or_else(|| panic!("no time in {title}"))
        .and_utc();
    assert!(
        (since - gone).num_seconds().abs() < 5,
        "stale since {since}, cut at {gone}"
    );
    assert!(
        chromium.text().await.contains(&digest),
        "what was known is no longer shown"
    );

    faulty.set(URI, "three");
    world.start_again().await;
    let after = world.content(URI, "three").await;
    let digest = after["digest"].as_str().unwrap()[7..15].to_owned();
    chromium
        .until("live again", INDICATOR, |word| *word == "live")
        .await;
    chromium
        .until("what is current", shown, |text| {
            text.as_str().unwrap().contains(&digest)
        })
        .await;
    assert_eq!(chromium.eval("return window.never_reloaded").await, true);
    let errors: Vec<String> = chromium
        .console_errors()
        .await
        .into_iter()
        // The browser itself notes that the server was away.
        .filter(|error| !error.contains("net::ERR_") && !error.contains("ERR_CONNECTION"))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    chromium.end().await;
}

#[tokio::test]
async fn markup_in_uri_and_content_stays_text() {
    let faulty = FaultyServer::start().await;
    let uri = "docs:///<img src=x onerror=window.owned=1>";
    let text = "</script><script>window.owned=1</script>\n<img src=x onerror=window.owned=1>\n";
    faulty.set_typed(uri, "text/html", text);
    let world =
        World::start(&[server(&faulty.url()), watch("hostile", &[uri], LAZY)].concat()).await;
    world.content(uri, text).await;
    let newer = format!("{text}<b onclick=window.owned=1>changed</b>\n");
    faulty.set_typed(uri, "text/html", &newer);
    faulty.notify(uri);
    let resource = world.content(uri, &newer).await;
    let id = resource["id"].as_str().unwrap();
    let chromium = Chromium::start().await;
    for path in [
        format!("/resources/{id}"),
        "/resources".to_owned(),
        "/".to_owned(),
        format!("/api/v1/resources/{id}/content"),
    ] {
        chromium.open(&format!("{}{path}", world.base)).await;
        fencepost_tests::wait::stays("nothing of it runs", Duration::from_secs(1), async || {
            let owned = chromium.eval("return window.owned ?? null").await;
            let images = chromium
                .eval(
                    "return [...document.images].filter(i => i.getAttribute('src') === 'x').length",
                )
                .await;
            let served_raw = path.ends_with("/content");
            if owned.is_null() && (served_raw || images == 0) {
                Ok(())
            } else {
                Err((path.clone(), owned, images))
            }
        })
        .await;
    }
    // The browser notes what the sandbox of the stored content kept from running; our pages gave it nothing to note.
    for noted in chromium.console_errors().await {
        assert!(noted.contains("/content"), "{noted}");
    }
    chromium
        .open_live(&format!("{}/resources/{id}", world.base))
        .await;
    let shown = chromium.text().await;
    for words in [uri, "<img src=x onerror=window.owned=1>", "<b onclick="] {
        assert!(shown.contains(words), "{words} is not shown as it is");
    }
    assert!(
        chromium.eval("return window.owned ?? null").await.is_null(),
        "markup ran after hydration"
    );
    assert_eq!(chromium.console_errors().await, Vec::<String>::new());
    chromium.end().await;
}
