//! Server-sent events from a response body, on top of `sse-stream`.
//!
//! `sse-stream` decodes CRLF over chunk borders, a BOM, several data lines, comments and split characters rightly.
//! Added here: a bound on the size of one event, which it lacks, and a last event whose blank line is missing when the
//! body ended cleanly, which the standard drops and some servers send.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use sse_stream::{Sse, SseByteStream};
use thiserror::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum SseFault {
    #[error("an event is larger than the limit")]
    TooLarge,
    #[error("the connection broke")]
    Broken,
    #[error("no byte within the idle limit")]
    Idle,
    #[error("an event is not UTF-8")]
    NotText,
}

/// The events of one response.
pub(crate) struct SseEvents {
    inner: SseByteStream<BoxStream<'static, Result<Bytes, SseFault>>>,
}

impl SseEvents {
    /// `idle`: end with [`SseFault::Idle`] after so long without any byte.
    pub(crate) fn new(response: reqwest::Response, limit: usize, idle: Option<Duration>) -> Self {
        let body = response
            .bytes_stream()
            .map(|chunk| chunk.map_err(|_| SseFault::Broken));
        let body = stream::unfold(body.boxed(), move |mut body| async move {
            let next = match idle {
                Some(wait) => tokio::time::timeout(wait, body.next())
                    .await
                    .unwrap_or(Some(Err(SseFault::Idle))),
                None => body.next().await,
            };
            next.map(|chunk| (chunk, body))
        });
        Self::of(body.boxed(), limit)
    }

    fn of(body: BoxStream<'static, Result<Bytes, SseFault>>, limit: usize) -> Self {
        let mut meter = BlockMeter::default();
        let metered = body
            .map(move |chunk| {
                let chunk = chunk?;
                if meter.pass(&chunk) > limit {
                    Err(SseFault::TooLarge)
                } else {
                    Ok(chunk)
                }
            })
            // The parser stops at an error, so this is reached at a clean end only.
            .chain(stream::once(async { Ok(Bytes::from_static(b"\n\n")) }));
        Self {
            inner: SseByteStream::new(metered.boxed()),
        }
    }

    pub(crate) async fn next(&mut self) -> Option<Result<Sse, SseFault>> {
        Some(self.inner.next().await?.map_err(|error| match error {
            sse_stream::Error::Body(source) => {
                source.downcast_ref().copied().unwrap_or(SseFault::Broken)
            }
            _ => SseFault::NotText,
        }))
    }
}

/// Counts the bytes since the last blank line, that is, of the event under construction.
#[derive(Default)]
struct BlockMeter {
    block: usize,
    line: usize,
    after_cr: bool,
}

impl BlockMeter {
    /// Returns the largest block seen in this chunk.
    fn pass(&mut self, chunk: &[u8]) -> usize {
        let mut largest = self.block;
        for &byte in chunk {
            let completes_crlf = self.after_cr && byte == b'\n';
            self.after_cr = byte == b'\r';
            if completes_crlf {
                continue;
            }
            if byte == b'\n' || byte == b'\r' {
                if self.line == 0 {
                    self.block = 0;
                }
                self.line = 0;
            } else {
                self.line += 1;
                self.block += 1;
                largest = largest.max(self.block);
            }
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    async fn parse(bytes: &[u8], step: usize, limit: usize) -> Vec<Result<Sse, SseFault>> {
        let chunks: Vec<_> = bytes
            .chunks(step)
            .map(|c| Ok(Bytes::copy_from_slice(c)))
            .collect();
        let mut events = SseEvents::of(stream::iter(chunks).boxed(), limit);
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            seen.push(event);
        }
        seen
    }

    #[tokio::test]
    async fn framing_corners_at_every_chunk_size() {
        let text = "\u{feff}: ping\r\n\r\nid: 7\r\ndata:\r\n\r\ndata: {\"a\":\r\ndata: \"𝄞\"}\r\n\r\nevent: x\rdata: last\r\r";
        for step in 1..text.len() {
            let seen: Vec<Sse> = parse(text.as_bytes(), step, 100)
                .await
                .into_iter()
                .map(Result::unwrap)
                .collect();
            let data: Vec<_> = seen
                .iter()
                .map(|s| s.data.as_deref().unwrap_or_default())
                .collect();
            assert_eq!(data, ["", "{\"a\":\n\"𝄞\"}", "last"], "chunks of {step}");
            assert_eq!(seen[0].id.as_deref(), Some("7"));
        }
    }

    #[tokio::test]
    async fn a_last_event_without_its_blank_line_counts_after_a_clean_end() {
        for text in ["data: x", "data: x\n", "data: x\r\n"] {
            let seen = parse(text.as_bytes(), 3, 100).await;
            assert_eq!(seen[0].as_ref().unwrap().data.as_deref(), Some("x"));
        }
    }

    #[tokio::test]
    async fn one_event_is_bounded_and_many_comments_are_not() {
        let comments = ": keepalive\n\n".repeat(1000);
        assert!(parse(comments.as_bytes(), 4096, 64).await.is_empty());
        let large = format!("data: {}\r\n", "x".repeat(10)).repeat(10);
        assert_eq!(
            parse(large.as_bytes(), 7, 64).await,
            vec![Err(SseFault::TooLarge)]
        );
    }
}
