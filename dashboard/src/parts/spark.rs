//! A small chart in plain SVG, drawn by the server: a line, its area, and the target across it.

use leptos::prelude::*;

/// Values along the width; `None` is a gap.
pub type Points = Vec<(f64, Option<f64>)>;

/// Path data in a box of 1000 by 100 whose top is `high` and whose bottom is `low`.
fn paths(points: &Points, low: f64, high: f64) -> (String, String) {
    use std::fmt::Write as _;
    let span = if high > low { high - low } else { 1.0 };
    let (mut line, mut area) = (String::new(), String::new());
    let mut run: Vec<(f64, f64)> = Vec::new();
    let mut flush = |run: &mut Vec<(f64, f64)>| {
        if let (Some(first), Some(last)) = (run.first().copied(), run.last().copied()) {
            let _ = write!(area, "M{:.1} 100", first.0);
            for (place, (x, y)) in run.iter().enumerate() {
                let _ = write!(line, "{}{x:.1} {y:.2}", if place == 0 { 'M' } else { 'L' });
                let _ = write!(area, "L{x:.1} {y:.2}");
            }
            if run.len() == 1 {
                // A lone value has no length: a short dash shows it.
                line.push_str("m-6 0h12");
            }
            let _ = write!(area, "L{:.1} 100Z", last.0);
        }
        run.clear();
    };
    for (share, value) in points {
        match value {
            Some(value) => run.push((
                share * 1_000.0,
                100.0 - ((value - low) / span).clamp(0.0, 1.0) * 100.0,
            )),
            None => flush(&mut run),
        }
    }
    flush(&mut run);
    (line, area)
}

/// The chart. It fills its box; strokes keep their width.
#[component]
pub fn Spark(
    #[prop(into)] points: Signal<Points>,
    #[prop(into)] low: Signal<f64>,
    #[prop(into)] high: Signal<f64>,
    #[prop(optional, into)] target: MaybeProp<f64>,
    /// Names the series' colour in the stylesheet.
    #[prop(default = "series-1")]
    series: &'static str,
) -> impl IntoView {
    let drawn = Memo::new(move |_| points.with(|points| paths(points, low.get(), high.get())));
    let across = move || {
        let span = high.get() - low.get();
        target
            .get()
            .filter(|_| span > 0.0)
            .map(|target| 100.0 - ((target - low.get()) / span).clamp(0.0, 1.0) * 100.0)
    };
    view! {
        <svg class=format!("spark {series}") viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden="true">
            <path class="area" d=move || drawn.get().1 />
            {move || across().map(|y| view! { <path class="target" d=format!("M0 {y:.2}H1000") /> })}
            <path class="line" d=move || drawn.get().0 />
        </svg>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_breaks_the_line_and_values_stay_in_the_box() {
        let (line, area) = paths(
            &vec![
                (0.0, Some(0.0)),
                (0.25, Some(20.0)),
                (0.5, None),
                (1.0, Some(5.0)),
            ],
            0.0,
            10.0,
        );
        assert_eq!(line, "M0.0 100.00L250.0 0.00M1000.0 50.00m-6 0h12");
        assert_eq!(area.matches('Z').count(), 2);
    }

    #[test]
    fn no_points_draw_nothing() {
        assert_eq!(paths(&Vec::new(), 0.0, 1.0), (String::new(), String::new()));
    }
}
