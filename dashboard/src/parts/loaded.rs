//! A question's answer on the page: its shape while it is awaited, its last good value from then on.

use std::sync::Arc;

use fencepost_views::Problem;
use leptos::prelude::*;

use super::Trouble;
use crate::data::Answer;
use crate::live::Live;

/// Renders `children` once, with a signal of the newest good answer. A later failure keeps what is shown and
/// says so above it; nothing moves under a reader.
#[component]
pub fn Loaded<T, V, F>(
    resource: Resource<Answer<T>>,
    /// What is shown until the first answer; as tall as what comes.
    #[prop(optional, into)]
    shape: ViewFnOnce,
    /// A section above asks for the same object and has said already that there is none.
    #[prop(optional)]
    absence_said: bool,
    children: F,
) -> impl IntoView
where
    T: Clone + PartialEq + Send + Sync + 'static,
    V: IntoView + 'static,
    F: Fn(Signal<T>) -> V + Send + Sync + 'static,
{
    let children = Arc::new(children);
    view! {
        <Transition fallback=shape>
            {
                let good = Memo::new(move |before: Option<&Option<T>>| match resource.get() {
                    Some(Ok(answer)) => Some(answer),
                    _ => before.cloned().flatten(),
                });
                let problem: Memo<Option<Problem>> = Memo::new(move |_| {
                    let problem = resource.get().and_then(Result::err);
                    problem.filter(|problem| !(absence_said && problem.status == 404))
                });
                let have = Memo::new(move |_| good.with(Option::is_some));
                // On the answer itself: one that brought nothing new says too that the server is there.
                Effect::new(move |_| {
                    let reached = resource.with(|answer| {
                        let problem = answer.as_ref().map(|answer| answer.as_ref().err());
                        problem.map(|problem| problem.is_none_or(|problem| problem.status != 0))
                    });
                    if let Some(reached) = reached {
                        Live::answered(reached);
                    }
                });
                let children = Arc::clone(&children);
                move || {
                    // Read here so that the surrounding boundary waits for the answer.
                    let _ = resource.get();
                    // Erased: the type of a page's tree would otherwise hold every component of it.
                    view! {
                        {move || problem.get().map(|problem| view! { <Trouble problem=problem kept=have.get() /> })}
                        {
                            let children = Arc::clone(&children);
                            move || {
                                have.get().then(|| {
                                    let first = good.get_untracked();
                                    first.map(|first| {
                                        let value = Memo::new(move |_| good.get().unwrap_or_else(|| first.clone()));
                                        children(value.into()).into_any()
                                    })
                                })
                            }
                        }
                    }
                    .into_any()
                }
            }
        </Transition>
    }
    .into_any()
}

/// Grey blocks where rows will be.
#[component]
pub fn Shape(#[prop(default = 6)] rows: usize) -> impl IntoView {
    view! {
        <div class="shape-rows" role="status" aria-label="Loading">
            {(0..rows).map(|_| view! { <span class="shape-row"></span> }).collect_view()}
        </div>
    }
}
