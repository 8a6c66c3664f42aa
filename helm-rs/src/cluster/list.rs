//! Whole lists, page by page.

use serde_json::Value;

use super::{Cluster, ClusterError, ErrorKind, ListQuery, Page, Resource};

/// Objects in one page when the caller does not say (client-go's default).
const PAGE: usize = 500;

/// Reads a whole list.
///
/// When the server forgets the list between two pages, it is read again in one answer, as
/// client-go's pager does.
///
/// # Errors
/// As [`Cluster::list`].
pub async fn list_all(
    cluster: &dyn Cluster,
    resource: &Resource,
    query: &ListQuery,
) -> Result<Page, ClusterError> {
    let mut query = query.clone();
    if query.limit == 0 {
        query.limit = PAGE;
    }
    let mut all = Page::default();
    loop {
        match cluster.list(resource, &query).await {
            Ok(page) => {
                all.items.extend(page.items);
                all.resource_version = page.resource_version;
                if page.next.is_empty() {
                    return Ok(all);
                }
                query.next = page.next;
            }
            Err(error) if error.kind() == ErrorKind::Expired && !query.next.is_empty() => {
                query.next.clear();
                query.limit = 0;
                return cluster.list(resource, &query).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Reads a list and hands over each object as its page comes, so that only one page is held.
/// Returns the collection's version.
///
/// # Errors
/// As [`Cluster::list`], and those of `each`. A list that the server forgets midway is
/// [`ErrorKind::Expired`]: what was handed over may then be incomplete.
pub async fn list_each<E: From<ClusterError>>(
    cluster: &dyn Cluster,
    resource: &Resource,
    query: &ListQuery,
    mut each: impl FnMut(Value) -> Result<(), E>,
) -> Result<String, E> {
    let mut query = query.clone();
    if query.limit == 0 {
        query.limit = PAGE;
    }
    loop {
        let page = cluster.list(resource, &query).await?;
        for item in page.items {
            each(item)?;
        }
        if page.next.is_empty() {
            return Ok(page.resource_version);
        }
        query.next = page.next;
    }
}
