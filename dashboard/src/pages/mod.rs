//! One page a route.

mod attention;
mod chart;
mod indexes;
mod objectives;
mod overview;
mod plot;
mod resource;
mod resources;
mod server_rows;
mod servers;

pub use indexes::IndexesPage;
pub use overview::OverviewPage;
pub use resource::ResourcePage;
pub use resources::ResourcesPage;
pub use servers::ServersPage;
