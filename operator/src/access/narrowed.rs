//! What a page may show: the ledger's answers, and content only to a caller who may read it.

use std::sync::Arc;

use fencepost_dashboard::source::{Answer, Source};
use fencepost_views::{
    ContentText, Index, Overview, Page, Receipt, Resource, ResourceDetail, ResourceFilter, Series,
    Server, Supersede, Timeline, Version, Watch,
};

use super::{gate::Gate, review::Caller};

/// The source of one request's page. The two answers that hold content ask for the right first; a page that asks for
/// neither costs no question.
pub struct Narrowed {
    pub source: Arc<dyn Source>,
    pub gate: Gate,
    pub caller: Arc<Caller>,
}

impl Source for Narrowed {
    fn version_text(&self, id: String, ordinal: i64) -> Answer<'_, ContentText> {
        Box::pin(async move {
            self.content(&id).await?;
            self.source.version_text(id, ordinal).await
        })
    }

    fn supersede(&self, id: String, from: i64, to: i64) -> Answer<'_, Option<Supersede>> {
        Box::pin(async move {
            self.content(&id).await?;
            self.source.supersede(id, from, to).await
        })
    }

    fn overview(&self, range_seconds: u32) -> Answer<'_, Overview> {
        self.source.overview(range_seconds)
    }

    fn series(&self, range_seconds: u32) -> Answer<'_, Series> {
        self.source.series(range_seconds)
    }

    fn resources(&self, filter: ResourceFilter) -> Answer<'_, Page<Resource>> {
        self.source.resources(filter)
    }

    fn resource(&self, id: String) -> Answer<'_, ResourceDetail> {
        self.source.resource(id)
    }

    fn versions(&self, id: String, after: Option<String>) -> Answer<'_, Page<Version>> {
        self.source.versions(id, after)
    }

    fn receipts(&self, id: String, after: Option<String>) -> Answer<'_, Page<Receipt>> {
        self.source.receipts(id, after)
    }

    fn timeline(&self, id: String, range_seconds: u32) -> Answer<'_, Timeline> {
        self.source.timeline(id, range_seconds)
    }

    fn servers(&self) -> Answer<'_, Page<Server>> {
        self.source.servers()
    }

    fn watches(&self) -> Answer<'_, Page<Watch>> {
        self.source.watches()
    }

    fn indexes(&self) -> Answer<'_, Page<Index>> {
        self.source.indexes()
    }
}

impl Narrowed {
    async fn content(&self, id: &str) -> Result<(), fencepost_views::Problem> {
        let allowed = self.gate.content_of(&self.caller, id).await;
        allowed.map_err(crate::api::ApiError::into_problem)
    }
}
