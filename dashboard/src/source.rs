//! What the server renders from. The operator implements it on the store and gives it by context as
//! `Arc<dyn Source>`; the browser gets the same answers from the JSON API.

use std::future::Future;
use std::pin::Pin;

use fencepost_views::{
    ContentText, Index, Overview, Page, Problem, Receipt, Resource, ResourceDetail, ResourceFilter,
    Series, Server, Supersede, Timeline, Version, Watch,
};

/// An answer on its way; `Err` is what the API would have answered.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send + 'a>>;

/// Read-only questions, each equal to one endpoint of the API.
pub trait Source: Send + Sync + 'static {
    /// `GET /api/v1/overview?range=`
    fn overview(&self, range_seconds: u32) -> Answer<'_, Overview>;
    /// `GET /api/v1/series?range=`
    fn series(&self, range_seconds: u32) -> Answer<'_, Series>;
    /// `GET /api/v1/resources`
    fn resources(&self, filter: ResourceFilter) -> Answer<'_, Page<Resource>>;
    /// `GET /api/v1/resources/{id}`
    fn resource(&self, id: String) -> Answer<'_, ResourceDetail>;
    /// `GET /api/v1/resources/{id}/versions?after=`
    fn versions(&self, id: String, after: Option<String>) -> Answer<'_, Page<Version>>;
    /// `GET /api/v1/resources/{id}/receipts?after=`
    fn receipts(&self, id: String, after: Option<String>) -> Answer<'_, Page<Receipt>>;
    /// `GET /api/v1/resources/{id}/timeline?range=`, the range ending now.
    fn timeline(&self, id: String, range_seconds: u32) -> Answer<'_, Timeline>;
    /// `GET /api/v1/resources/{id}/versions/{ordinal}/text`
    fn version_text(&self, id: String, ordinal: i64) -> Answer<'_, ContentText>;
    /// `GET /api/v1/resources/{id}/supersede?from=&to=`; `None` when there is nothing to say.
    fn supersede(&self, id: String, from: i64, to: i64) -> Answer<'_, Option<Supersede>>;
    /// `GET /api/v1/servers`
    fn servers(&self) -> Answer<'_, Page<Server>>;
    /// `GET /api/v1/watches`
    fn watches(&self) -> Answer<'_, Page<Watch>>;
    /// `GET /api/v1/indexes`
    fn indexes(&self) -> Answer<'_, Page<Index>>;
}
