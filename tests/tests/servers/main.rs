//! Each server that the end-to-end tests use starts, answers, and does by itself what those tests rely on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod faulty;
mod postgres;
mod process;
mod real;
mod receiver;
