//! The resources: search, filters and keyset pages, all of it in the address bar. Works with 100,000.

use fencepost_views::{LiveKind, Page, Resource as Row, ResourceFilter};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::components::Form;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use crate::live::Live;
use crate::parts::{Badge, Command, Empty, Loaded, Pager, Shape, Until, When, state_tone};
use crate::{Base, data, figures};

/// The states of the design, in the order of a resource's life.
const STATES: [&str; 10] = [
    "DISCOVERED",
    "SUBSCRIBING",
    "ACTIVE",
    "UNSUBSCRIBING",
    "CLOSED",
    "UNSUBSCRIBE_UNKNOWN",
    "TOMBSTONE_PENDING",
    "TOMBSTONED",
    "REVOKED",
    "RECONCILIATION_REQUIRED",
];

/// The filter that the address names. Empty fields of the form count as absent.
fn filter_of(query: &ParamsMap) -> ResourceFilter {
    let given = |name: &str| {
        query
            .get(name)
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    };
    ResourceFilter {
        state: given("state"),
        server: given("server"),
        subject: given("subject"),
        watch: given("watch"),
        stale: given("stale").and_then(|stale| stale.parse().ok()),
        q: given("q"),
        limit: given("limit").and_then(|limit| limit.parse().ok()),
        after: given("after"),
    }
}

#[component]
pub fn ResourcesPage() -> impl IntoView {
    let query = use_query_map();
    let filter = Memo::new(move |_| filter_of(&query.read()));
    let moved = Live::refresh_on(|event| event.kind == LiveKind::Resource);
    let page = Resource::new(
        move || (filter.get(), moved.get()),
        |(filter, _)| data::resources(filter),
    );
    view! {
        <Title text="Resources" />
        <div class="page-head">
            <h1>"Resources"</h1>
        </div>
        <Filters filter=filter />
        <Loaded resource=page shape=|| view! { <Shape rows=12 /> } let:page>
            <Table page=page filter=filter />
        </Loaded>
    }
}

#[component]
fn Filters(filter: Memo<ResourceFilter>) -> impl IntoView {
    let base = Base::here();
    let action = base.to("/resources");
    let value = move |field: fn(&ResourceFilter) -> Option<String>| {
        move || filter.with(field).unwrap_or_default()
    };
    let any = move || {
        filter.with(|filter| {
            let bare = ResourceFilter {
                limit: filter.limit,
                ..ResourceFilter::default()
            };
            *filter != bare
        })
    };
    let clear = base.to("/resources");
    view! {
        <Form method="GET" action=action attr:class="filters" attr:role="search" attr:aria-label="Resources">
            <label class="field grow">
                <span>"Search in the URI"</span>
                <input id="search" type="search" name="q" autocomplete="off" spellcheck="false" prop:value=value(|f| f.q.clone()) value=value(|f| f.q.clone()) />
            </label>
            <label class="field">
                <span>"State"</span>
                <select name="state">
                    <option value="">"any"</option>
                    {STATES
                        .map(|state| {
                            view! {
                                <option value=state selected=move || filter.with(|filter| filter.state.as_deref() == Some(state))>
                                    {figures::words(state)}
                                </option>
                            }
                        })
                        .collect_view()}
                </select>
            </label>
            <label class="field">
                <span>"Freshness"</span>
                <select name="stale">
                    <option value="">"any"</option>
                    <option value="true" selected=move || filter.with(|filter| filter.stale == Some(true))>"stale"</option>
                    <option value="false" selected=move || filter.with(|filter| filter.stale == Some(false))>"fresh"</option>
                </select>
            </label>
            <Named name="server" title="Server" value=Signal::derive(value(|f| f.server.clone())) />
            <Named name="subject" title="Subject" value=Signal::derive(value(|f| f.subject.clone())) />
            <Named name="watch" title="Watch" value=Signal::derive(value(|f| f.watch.clone())) />
            <div class="filter-ends">
                <button type="submit" class="primary">"Search"</button>
                <Show when=any>
                    <a class="button" href=clear.clone()>"Clear"</a>
                </Show>
            </div>
        </Form>
    }
}

/// A field that takes `namespace/name`.
#[component]
fn Named(name: &'static str, title: &'static str, value: Signal<String>) -> impl IntoView {
    view! {
        <label class="field">
            <span>{title}</span>
            <input type="text" name=name placeholder="namespace/name" autocomplete="off" spellcheck="false" prop:value=value value=move || value.get() />
        </label>
    }
}

#[component]
fn Table(page: Signal<Page<Row>>, filter: Memo<ResourceFilter>) -> impl IntoView {
    let base = Base::here();
    let none = Memo::new(move |_| page.with(|page| page.items.is_empty()));
    let shown = Signal::derive(move || page.with(|page| page.items.len()));
    let address = {
        let base = base.clone();
        move |after: Option<String>| {
            base.to(&format!(
                "/resources{}",
                data::query(&ResourceFilter {
                    after,
                    ..filter.get()
                })
            ))
        }
    };
    let next = {
        let address = address.clone();
        Signal::derive(move || {
            page.with(|page| page.next.clone())
                .map(|next| address(Some(next)))
        })
    };
    let first = Signal::derive(move || {
        filter
            .with(|filter| filter.after.is_some())
            .then(|| address(None))
    });
    let json =
        Signal::derive(move || base.api(&format!("resources{}", data::query(&filter.get()))));
    view! {
        {move || {
            if none.get() {
                view! { <Nothing filter=filter /> }.into_any()
            } else {
                view! {
                    <div class="table-wrap">
                        <table class="rows resources">
                            <thead>
                                <tr>
                                    <th scope="col">"Resource"</th>
                                    <th scope="col">"State"</th>
                                    <th scope="col">"As of"</th>
                                    <th scope="col">"Stale"</th>
                                    <th scope="col" class="num" title="Last accepted ordinal of all issued">"Watermark"</th>
                                    <th scope="col">"By"</th>
                                    <th scope="col">"Server"</th>
                                    <th scope="col">"Subject"</th>
                                </tr>
                            </thead>
                            <tbody>
                                <For each=move || page.get().items key=|row| format!("{row:?}") let:row>
                                    <Line row=row />
                                </For>
                            </tbody>
                        </table>
                    </div>
                }
                    .into_any()
            }
        }}
        <Pager shown=shown first=first next=next json=json noun="resources" />
    }
}

#[component]
fn Line(row: Row) -> impl IntoView {
    let base = Base::here();
    let href = base.to(&format!("/resources/{}", data::segment(&row.id)));
    let tone = state_tone(&row.state, row.stale);
    let word = if row.stale && row.state == "ACTIVE" {
        "stale".to_owned()
    } else {
        row.state.clone()
    };
    let reason = row.reason.clone().map(|reason| figures::words(&reason));
    view! {
        <tr>
            <td class="uri"><a href=href title=row.uri.clone()><code>{figures::middle(&row.uri, 64)}</code></a></td>
            <td data-label="State" class="state">
                <Badge tone=tone word=word />
                {reason.map(|reason| view! { " " <span class="muted small">{reason}</span> })}
            </td>
            <td data-label="As of" class="when">
                {row.confirmed_at.map_or_else(
                    || view! { <span class="muted">"never read"</span> }.into_any(),
                    |at| view! { <When at=at /> }.into_any(),
                )}
            </td>
            <td data-label="Stale" class="when">
                {row.stale_after.map_or_else(
                    || view! { <span class="muted">"–"</span> }.into_any(),
                    |at| view! { <Until at=at /> }.into_any(),
                )}
            </td>
            <td data-label="Watermark" class="num">
                {figures::count(row.ordinal)}<span class="muted">" / "{figures::count(row.issued_ordinal)}</span>
            </td>
            <td data-label="By">{figures::camel_words(&row.mode)}</td>
            <td data-label="Server"><span class="muted">{row.server.namespace}"/"</span>{row.server.name}</td>
            <td data-label="Subject">{row.subject.name}</td>
        </tr>
    }
}

#[component]
fn Nothing(filter: Memo<ResourceFilter>) -> impl IntoView {
    let bare = move || {
        filter.with(|filter| {
            *filter
                == ResourceFilter {
                    limit: filter.limit,
                    ..ResourceFilter::default()
                }
        })
    };
    let base = Base::here();
    move || {
        if bare() {
            view! {
                <Empty title="No resource is watched yet">
                    <p>"A WatchedResource names a server, a subject and one or more URIs:"</p>
                    <Command text=MANIFEST.to_owned() what="the manifest" />
                </Empty>
            }
            .into_any()
        } else {
            let all = base.to("/resources");
            view! {
                <Empty title="Nothing matches">
                    <p>"All conditions must hold at once. Search looks for the text anywhere in the URI, upper and lower case alike; server, subject and watch are written " <code>"namespace/name"</code> "."</p>
                    <p><a href=all>"Show all resources"</a></p>
                </Empty>
            }
            .into_any()
        }
    }
}

const MANIFEST: &str = "apiVersion: fencepost.dev/v1alpha1
kind: WatchedResource
metadata: {name: service-limits, namespace: agents}
spec:
  serverRef: {name: config-service}
  subjectRef: {name: support-agents}
  uris: [\"config://service/limits\"]
  refresh: {mode: Auto, maxStaleness: 60s}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_filter_gives_the_filter_back() {
        let filter = ResourceFilter {
            q: Some("limits & co".into()),
            state: Some("ACTIVE".into()),
            stale: Some(false),
            after: Some("cursor==".into()),
            ..ResourceFilter::default()
        };
        let mut query = ParamsMap::new();
        for (name, value) in [
            ("q", "limits & co"),
            ("state", "ACTIVE"),
            ("stale", "false"),
            ("after", "cursor=="),
            ("watch", " "),
        ] {
            query.insert(name, value.to_owned());
        }
        assert_eq!(filter_of(&query), filter);
        assert_eq!(
            data::query(&filter),
            "?q=limits%20%26%20co&state=ACTIVE&stale=false&after=cursor%3D%3D"
        );
    }
}
