//! Versions, the difference between any two, and the note that supersedes the older in a conversation.

use fencepost_views::{Supersede, Version};
use leptos::prelude::*;
use leptos_router::components::Form;

use super::place::Place;
use crate::data::{self, Comparison};
use crate::diff::{Difference, Tag};
use crate::parts::{Copy, Digest, Pager, When};
use crate::{Base, figures};

#[component]
pub fn Versions(comparison: Signal<Comparison>, place: Memo<Place>) -> impl IntoView {
    let action = Base::here().to(&format!(
        "/resources/{}",
        data::segment(&place.get_untracked().id)
    ));
    let versions = Memo::new(move |_| comparison.with(|comparison| comparison.page.items.clone()));
    let pair = Memo::new(move |_| comparison.with(|comparison| (comparison.old, comparison.new)));
    let none = Memo::new(move |_| versions.with(Vec::is_empty));
    let shown = Signal::derive(move || versions.with(Vec::len));
    let next = Signal::derive(move || {
        comparison
            .with(|comparison| comparison.page.next.clone())
            .map(|next| {
                Place {
                    versions_after: Some(next),
                    old: None,
                    new: None,
                    ..place.get()
                }
                .address()
            })
    });
    let first = Signal::derive(move || {
        place.read().versions_after.is_some().then(|| {
            Place {
                versions_after: None,
                old: None,
                new: None,
                ..place.get()
            }
            .address()
        })
    });
    let base = Base::here();
    let json = Signal::derive(move || {
        base.api(&format!(
            "resources/{}/versions",
            data::segment(&place.read().id)
        ))
    });
    // The form sets `old` and `new`; the rest of the view goes along.
    let carried = move || {
        place
            .get()
            .pairs()
            .into_iter()
            .filter(|(name, _)| !matches!(*name, "old" | "new"))
            .map(|(name, value)| view! { <input type="hidden" name=name value=value /> })
            .collect_view()
    };
    view! {
        <section aria-labelledby="versions">
            <h2 id="versions" class="section">"Versions"</h2>
            <Show
                when=move || !none.get()
                fallback=|| view! { <p class="muted quiet-line">"No version has been accepted yet. The first accepted read makes one."</p> }
            >
                <Form method="GET" action=action.clone() noscroll=true attr:class="versions">
                    {carried}
                    <div class="table-wrap">
                        <table class="rows">
                            <thead>
                                <tr>
                                    <th scope="col" class="pick">"Old"</th>
                                    <th scope="col" class="pick">"New"</th>
                                    <th scope="col" class="num">"Ordinal"</th>
                                    <th scope="col" class="num">"Generation"</th>
                                    <th scope="col">"Accepted"</th>
                                    <th scope="col">"By"</th>
                                    <th scope="col" class="num">"Size"</th>
                                    <th scope="col">"Digest"</th>
                                    <th scope="col">"Server version"</th>
                                </tr>
                            </thead>
                            <tbody>
                                {move || versions.get().into_iter().map(|version| view! { <Line version=version pair=pair /> }).collect_view()}
                            </tbody>
                        </table>
                    </div>
                    <div class="filter-ends"><button type="submit">"Compare"</button></div>
                </Form>
                <Pager shown=shown first=first next=next json=json noun="versions" />
                <Compared comparison=comparison />
            </Show>
        </section>
    }
}

#[component]
fn Line(version: Version, pair: Memo<(Option<i64>, Option<i64>)>) -> impl IntoView {
    let ordinal = version.ordinal;
    let kept = version.content_kept;
    let pick = move |name: &'static str, chosen: bool| {
        view! {
            <td class="pick" data-label=if name == "old" { "Old" } else { "New" }>
                <input
                    type="radio"
                    name=name
                    value=ordinal.to_string()
                    checked=chosen
                    disabled=!kept
                    title=if kept { "" } else { "The content of this version is no longer kept" }
                    aria-label=format!("Version {ordinal} as the {name} one")
                />
            </td>
        }
    };
    let (old, new) = pair.get_untracked();
    view! {
        <tr>
            {pick("old", old == Some(ordinal))}
            {pick("new", new == Some(ordinal))}
            <td data-label="Ordinal" class="num strong">{ordinal.to_string()}</td>
            <td data-label="Generation" class="num">{version.generation.to_string()}</td>
            <td data-label="Accepted" class="when"><When at=version.accepted_at /></td>
            <td data-label="By">{figures::camel_words(&version.trigger)}</td>
            <td data-label="Size" class="num">{figures::bytes(version.size)}</td>
            <td data-label="Digest"><Digest digest=Some(version.digest) /></td>
            <td data-label="Server version">{version.server_version}</td>
        </tr>
    }
}

#[component]
fn Compared(comparison: Signal<Comparison>) -> impl IntoView {
    move || {
        let comparison = comparison.get();
        let (Some(old), Some(new)) = (comparison.old, comparison.new) else {
            return view! { <p class="muted quiet-line">"There is one version so far; a difference needs two."</p> }.into_any();
        };
        view! {
            {comparison.note.map(|note| view! { <Note note=note /> })}
            {match comparison.difference {
                Ok(difference) => view! { <Difference old=old new=new difference=difference /> }.into_any(),
                Err(why) => view! { <p class="muted quiet-line">{format!("{old} and {new} cannot be compared here. {why}")}</p> }.into_any(),
            }}
        }
        .into_any()
    }
}

#[component]
fn Note(note: Supersede) -> impl IntoView {
    let text = note.text.clone();
    view! {
        <aside class="note" aria-label="Supersede note">
            <div class="note-head">
                <h3>"Note for a running conversation"</h3>
                <Copy text=text what="the note" />
            </div>
            <p class="note-text">{note.text}</p>
        </aside>
    }
}

#[component]
fn Difference(old: i64, new: i64, difference: Difference) -> impl IntoView {
    let Difference {
        lines,
        added,
        removed,
        cut,
    } = difference;
    let same = lines.is_empty();
    view! {
        <figure class="diff">
            <figcaption>
                <span class="num">{format!("{old} → {new}")}</span>
                <span class="num good-text">{format!("+{added}")}</span>
                <span class="num bad-text">{format!("−{removed}")}</span>
                {same.then(|| view! { <span class="muted">"no line differs"</span> })}
                {cut.then(|| view! { <span class="warn-text">"shortened: the contents are larger than a page shows"</span> })}
            </figcaption>
            <div class="diff-lines" tabindex="0" role="region" aria-label=format!("Difference from {old} to {new}")>
                <table>
                    <tbody>
                        {lines
                            .into_iter()
                            .map(|line| {
                                let (class, sign) = match line.tag {
                                    Tag::Same => ("same", " "),
                                    Tag::Removed => ("removed", "−"),
                                    Tag::Added => ("added", "+"),
                                    Tag::Skipped => ("skipped", "⋯"),
                                };
                                let number = |number: Option<usize>| number.map(|number| number.to_string()).unwrap_or_default();
                                view! {
                                    <tr class=class>
                                        <td class="line-number">{number(line.old)}</td>
                                        <td class="line-number">{number(line.new)}</td>
                                        <td class="sign">{sign}</td>
                                        <td class="line">{line.text}</td>
                                    </tr>
                                }
                            })
                            .collect_view()}
                    </tbody>
                </table>
            </div>
        </figure>
    }
}
