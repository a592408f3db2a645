//! One resource: the truth about it, the picture of its reads, its versions and its receipts.

mod glyph;
mod picture;
mod place;
mod receipts;
mod truth;
mod versions;

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::{use_params_map, use_query_map};

use crate::live::Live;
use crate::parts::{Loaded, Shape};
use crate::{Base, data, figures};
use picture::PictureSection;
use place::Place;
use receipts::Receipts;
use truth::Truth;
use versions::Versions;

#[component]
pub fn ResourcePage() -> impl IntoView {
    let params = use_params_map();
    let query = use_query_map();
    let id = Memo::new(move |_| params.read().get("id").unwrap_or_default());
    let place = Memo::new(move |_| Place::of(&id.get(), &query.read()));
    let moved = Live::refresh_on(move |event| {
        id.with_untracked(|id| event.id.as_deref() == Some(id.as_str()))
    });

    let detail = Resource::new(
        move || (id.get(), moved.get()),
        |(id, _)| data::resource(id),
    );
    let timeline = Resource::new(
        move || (id.get(), place.read().range.seconds, moved.get()),
        |(id, seconds, _)| data::timeline(id, seconds),
    );
    let versions = Resource::new(
        move || {
            let place = place.get();
            (
                id.get(),
                place.versions_after,
                place.old,
                place.new,
                moved.get(),
            )
        },
        |(id, after, old, new, _)| data::comparison(id, after, old, new),
    );
    let receipts = Resource::new(
        move || (id.get(), place.read().receipts_after.clone(), moved.get()),
        |(id, after, _)| data::receipts(id, after),
    );
    let base = Base::here();
    let all = base.to("/resources");
    view! {
        <nav class="crumbs" aria-label="Where this is"><a href=all>"Resources"</a></nav>
        // Until the URI is known, and where there is no such resource.
        <Title text="Resource" />
        <Loaded resource=detail shape=|| view! { <Shape rows=6 /> } let:detail>
            <Title text=move || detail.with(|detail| figures::middle(&detail.resource.uri, 60)) />
            <Truth detail=detail />
        </Loaded>
        <Loaded resource=timeline absence_said=true shape=|| view! { <Shape rows=6 /> } let:timeline>
            <PictureSection timeline=timeline place=place />
        </Loaded>
        <Loaded resource=versions absence_said=true shape=|| view! { <Shape rows=4 /> } let:comparison>
            <Versions comparison=comparison place=place />
        </Loaded>
        <Loaded resource=receipts absence_said=true shape=|| view! { <Shape rows=8 /> } let:page>
            <Receipts page=page place=place />
        </Loaded>
    }
}
