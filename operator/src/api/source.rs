//! What the dashboard's pages are rendered from: the API's own answers, without the HTTP between.

use chrono::TimeDelta;
use fencepost_dashboard::source::{Answer, Source};
use fencepost_store::queries::PageSize;
use fencepost_views::{
    ContentText, Index, Overview, Page, Problem, Receipt, Resource, ResourceDetail, ResourceFilter,
    Series, Server, Supersede, Timeline, Version, Watch,
};

use super::{ApiState, parameters::MAX_RANGE_SECONDS, problem::ApiError};

/// Answers the pages from the same ledger, by the same rules, as the API.
#[derive(Clone)]
pub struct LedgerSource {
    state: ApiState,
}

impl LedgerSource {
    pub fn new(state: ApiState) -> Self {
        Self { state }
    }
}

/// A window as the API bounds it.
fn range(seconds: u32) -> TimeDelta {
    TimeDelta::seconds(i64::from(seconds).clamp(1, MAX_RANGE_SECONDS))
}

fn problem(error: impl Into<ApiError>) -> Problem {
    error.into().into_problem()
}

impl Source for LedgerSource {
    fn overview(&self, range_seconds: u32) -> Answer<'_, Overview> {
        Box::pin(async move {
            self.state
                .queries
                .overview(range(range_seconds))
                .await
                .map_err(problem)
        })
    }

    fn series(&self, range_seconds: u32) -> Answer<'_, Series> {
        Box::pin(async move {
            self.state
                .queries
                .series(range(range_seconds))
                .await
                .map_err(problem)
        })
    }

    fn resources(&self, filter: ResourceFilter) -> Answer<'_, Page<Resource>> {
        Box::pin(async move { self.state.queries.resources(&filter).await.map_err(problem) })
    }

    fn resource(&self, id: String) -> Answer<'_, ResourceDetail> {
        Box::pin(async move { self.state.resource(&id).await.map_err(problem) })
    }

    fn versions(&self, id: String, after: Option<String>) -> Answer<'_, Page<Version>> {
        Box::pin(async move {
            self.state
                .versions(&id, PageSize::DEFAULT, after.as_deref())
                .await
                .map_err(problem)
        })
    }

    fn receipts(&self, id: String, after: Option<String>) -> Answer<'_, Page<Receipt>> {
        Box::pin(async move {
            self.state
                .receipts(&id, PageSize::DEFAULT, after.as_deref())
                .await
                .map_err(problem)
        })
    }

    fn timeline(&self, id: String, range_seconds: u32) -> Answer<'_, Timeline> {
        Box::pin(async move {
            self.state
                .timeline(&id, range(range_seconds))
                .await
                .map_err(problem)
        })
    }

    fn version_text(&self, id: String, ordinal: i64) -> Answer<'_, ContentText> {
        Box::pin(async move { self.state.version_text(&id, ordinal).await.map_err(problem) })
    }

    fn supersede(&self, id: String, from: i64, to: i64) -> Answer<'_, Option<Supersede>> {
        Box::pin(async move { self.state.supersede(&id, from, to).await.map_err(problem) })
    }

    fn servers(&self) -> Answer<'_, Page<Server>> {
        Box::pin(async move {
            self.state
                .servers(PageSize::DEFAULT, None)
                .await
                .map_err(problem)
        })
    }

    fn watches(&self) -> Answer<'_, Page<Watch>> {
        Box::pin(async move {
            self.state
                .queries
                .watches(PageSize::DEFAULT, None)
                .await
                .map_err(problem)
        })
    }

    fn indexes(&self) -> Answer<'_, Page<Index>> {
        Box::pin(async move {
            self.state
                .queries
                .indexes(PageSize::DEFAULT, None)
                .await
                .map_err(problem)
        })
    }
}
