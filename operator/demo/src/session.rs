//! What one client is answered and told: rmcp's server handler over a [`Folder`].
//!
//! rmcp makes one of these for each legacy session, for each modern HTTP request, and for a whole connection over standard input. A
//! notification goes out only for a URI that this client subscribed to, and following begins before the subscription is
//! acknowledged: what changes in between is told.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        Implementation, ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
        ResourceContents, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig,
        SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    change::{Changes, Follower},
    folder::{Body, Folder, MAX_FILES, ReadError},
    mime, uri,
};

/// Entries on one page of `resources/list`: small enough that a folder of a few hundred files shows paging.
const PAGE: usize = 100;

/// URIs one client may subscribe to: as many as there can be files.
const MAX_SUBSCRIPTIONS: usize = MAX_FILES;

/// Followers made for listens that have not begun. Each listen takes one at once; more than a few means that clients went away.
const MAX_WAITING: usize = 16;

#[derive(Debug)]
pub struct Session {
    folder: Arc<Folder>,
    changes: Changes,
    subscribed: Arc<Mutex<BTreeSet<String>>>,
    waiting: Mutex<VecDeque<Follower>>,
    /// The follower of a legacy session, from its construction until `initialized` starts the telling.
    legacy: Mutex<Option<Follower>>,
    ended: CancellationToken,
    _end: DropGuard,
}

/// A poisoned lock guards plain collections here, which are whole after any panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cursor_after(uri: &str) -> String {
    URL_SAFE_NO_PAD.encode(uri)
}

fn not_found(uri: &str) -> ErrorData {
    // rmcp writes -32602 in place of -32002 for a modern client.
    ErrorData::resource_not_found(
        "resource not found",
        Some(serde_json::json!({ "uri": uri })),
    )
}

impl Session {
    pub fn new(folder: Arc<Folder>, changes: Changes) -> Self {
        Self::ending_with(folder, changes, CancellationToken::new())
    }

    /// A session whose listens end when `ended` is cancelled, and which cancels it when it goes.
    pub fn ending_with(folder: Arc<Folder>, changes: Changes, ended: CancellationToken) -> Self {
        Self {
            legacy: Mutex::new(Some(changes.follow())),
            folder,
            changes,
            subscribed: Arc::default(),
            waiting: Mutex::default(),
            _end: ended.clone().drop_guard(),
            ended,
        }
    }

    fn page(folder: &Folder, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
        let after = cursor
            .map(|cursor| {
                let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
                String::from_utf8(bytes)
                    .ok()
                    .filter(|uri| uri::to_path(uri).is_some())
            })
            .map(|uri| {
                uri.ok_or_else(|| {
                    ErrorData::invalid_params("this cursor was not given by this server", None)
                })
            })
            .transpose()?;
        let files = folder.files().ok_or_else(|| {
            ErrorData::internal_error(
                format!("the folder holds more than {MAX_FILES} files"),
                None,
            )
        })?;
        // Ordered by URI, not by path: the two orders differ where a name holds an encoded byte, and the cursor is a URI.
        let mut entries: Vec<_> = files
            .into_iter()
            .map(|(path, stamp)| (uri::of_path(&path), path, stamp))
            .collect();
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        let start = after.map_or(0, |after| {
            entries.partition_point(|(uri, ..)| *uri <= after)
        });
        let mut rest = entries.into_iter().skip(start);
        let resources: Vec<Resource> = rest
            .by_ref()
            .take(PAGE)
            .map(|(uri, path, stamp)| {
                let resource = Resource::new(uri, path.to_string_lossy()).with_size(stamp.size);
                match mime::of_path(&path) {
                    Some(mime) => resource.with_mime_type(mime),
                    None => resource,
                }
            })
            .collect();
        let mut result = ListResourcesResult::default();
        if rest.next().is_some() {
            result.next_cursor = resources.last().map(|last| cursor_after(&last.uri));
        }
        result.resources = resources;
        Ok(result)
    }

    async fn tell_legacy(
        peer: Peer<RoleServer>,
        mut follower: Follower,
        subscribed: Arc<Mutex<BTreeSet<String>>>,
    ) {
        while let Some(told) = follower.next().await {
            let updated: Vec<String> = told.updated(&lock(&subscribed)).cloned().collect();
            for uri in updated {
                if peer
                    .notify_resource_updated(ResourceUpdatedNotificationParam::new(uri))
                    .await
                    .is_err()
                {
                    return;
                }
            }
            if told.list() && peer.notify_resource_list_changed().await.is_err() {
                return;
            }
        }
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(
                "fencepost-demo",
                env!("CARGO_PKG_VERSION"),
            ))
            .with_instructions(
                "The files of one folder, as they are now. Subscribe to be told of edits.",
            )
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(follower) = lock(&self.legacy).take() else {
            return;
        };
        let telling = Self::tell_legacy(context.peer, follower, Arc::clone(&self.subscribed));
        let ended = self.ended.clone();
        tokio::spawn(async move { ended.run_until_cancelled(telling).await });
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let folder = Arc::clone(&self.folder);
        let cursor = request.and_then(|request| request.cursor);
        tokio::task::spawn_blocking(move || Self::page(&folder, cursor.as_deref()))
            .await
            .map_err(|_| ErrorData::internal_error("the folder could not be listed", None))?
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::default())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let folder = Arc::clone(&self.folder);
        let uri = request.uri.clone();
        let content = tokio::task::spawn_blocking(move || folder.read(&uri))
            .await
            .map_err(|_| ErrorData::internal_error("the file could not be read", None))?
            .map_err(|error| match error {
                ReadError::NotFound => not_found(&request.uri),
                ReadError::TooLarge | ReadError::Unreadable(_) => {
                    ErrorData::internal_error(error.to_string(), None)
                }
            })?;
        let contents = match content.body {
            Body::Text(text) => ResourceContents::text(text, request.uri),
            Body::Blob(bytes) => ResourceContents::blob(
                base64::engine::general_purpose::STANDARD.encode(bytes),
                request.uri,
            ),
        };
        Ok(ReadResourceResult::new(vec![contents.with_mime_type(content.mime)]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // A file that is not there yet may be subscribed to: its creation is then told.
        if uri::to_path(&request.uri).is_none() {
            return Err(not_found(&request.uri));
        }
        let mut subscribed = lock(&self.subscribed);
        if subscribed.len() >= MAX_SUBSCRIPTIONS {
            return Err(ErrorData::invalid_params(
                format!("more than {MAX_SUBSCRIPTIONS} subscriptions"),
                None,
            ));
        }
        subscribed.insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        lock(&self.subscribed).remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(self.changes.follow());
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| uri::to_path(uri).is_some());
            uris.truncate(MAX_SUBSCRIPTIONS);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut follower = lock(&self.waiting)
            .pop_front()
            .unwrap_or_else(|| self.changes.follow());
        let accepted = context.accepted();
        let subscribed: BTreeSet<String> = accepted
            .resource_subscriptions
            .iter()
            .flatten()
            .cloned()
            .collect();
        let tell_list = accepted.resources_list_changed == Some(true);
        loop {
            let told = tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.ended.cancelled() => return Ok(()),
                told = follower.next() => told,
            };
            let Some(told) = told else { return Ok(()) };
            for uri in told.updated(&subscribed) {
                if context.sink().notify_resource_updated(uri).await.is_err() {
                    return Ok(());
                }
            }
            if tell_list
                && told.list()
                && context.sink().notify_resource_list_changed().await.is_err()
            {
                return Ok(());
            }
        }
    }
}
