//! The private Postgres starts, gives fresh databases, and leaves no process.

use fencepost_tests::postgres::{Database, Postgres};
use sqlx::{Connection as _, PgConnection};

#[tokio::test]
async fn databases_are_fresh_and_apart() {
    let (first, second) = tokio::join!(Database::fresh(), Database::fresh());
    assert_ne!(first.url, second.url);
    let mut connection = PgConnection::connect(&first.url).await.unwrap();
    sqlx::raw_sql("CREATE TABLE here (n int)")
        .execute(&mut connection)
        .await
        .unwrap();
    let mut connection = PgConnection::connect(&second.url).await.unwrap();
    assert!(
        sqlx::raw_sql("SELECT * FROM here")
            .execute(&mut connection)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_cluster_ends_with_its_owner() {
    let postgres = Postgres::start(&[]).await;
    let url = postgres.url().to_owned();
    PgConnection::connect(&url).await.unwrap();
    drop(postgres);
    assert!(PgConnection::connect(&url).await.is_err());
}
