//! Parts that several pages share. Each renders the same on both sides until hydration.

mod badge;
mod copy;
mod empty;
mod indicator;
mod loaded;
mod pager;
mod ranges;
mod spark;
mod theme_switch;
mod trouble;
mod when;

pub use badge::{Badge, Shape as ToneShape, Tone, state_tone};
pub use copy::{Copy, Digest};
pub use empty::{Command, Empty};
pub use indicator::Indicator;
pub use loaded::{Loaded, Shape};
pub use pager::Pager;
pub use ranges::Ranges;
pub use spark::{Points, Spark};
pub use theme_switch::ThemeSwitch;
pub use trouble::Trouble;
pub use when::{Until, When};
