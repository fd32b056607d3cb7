//! Pages of lists.

use axum::http::header::HOST;

use crate::support::prelude::*;

/// A workspace with `count` dashboards. Some of them share a name, are pinned or have no name.
async fn with_dashboards(config: Config, count: usize) -> Workspace {
    let workspace = Workspace::with(config).await;
    let list = workspace.dashboards("");
    let made = (0..count).map(|number| {
        let name = if number % 7 == 0 { json!(null) } else { json!(format!("n{}", number % 20)) };
        workspace.owner.post(&list, json!({"name": name, "pinned": number % 5 == 0}))
    });
    for answer in join_all(made).await {
        assert_eq!(answer.status, 201);
    }
    workspace
}

#[tokio::test]
async fn invalid_page_limits_and_offsets_fall_back() {
    let workspace = with_dashboards(Config::default(), 12).await;
    let list = workspace.dashboards("");
    let all = ids(&workspace.owner.get(&list).await.ok());
    assert_eq!(all.len(), 12);
    for (query, from, to) in [
        ("?limit=5&offset=10", 10, 12),
        ("?limit=0", 0, 12),
        ("?limit=abc&offset=-3", 0, 12),
        ("?limit=%FF&offset=%", 0, 12),
        ("?limit&offset", 0, 12),
        ("?limit=3&offset=2&limit=4&offset=4", 4, 8),
        ("?LIMIT=3", 0, 12),
        ("?offset=12", 12, 12),
        ("?offset=18446744073709551615&limit=18446744073709551615", 12, 12),
    ] {
        let page = workspace.owner.get(&format!("{list}{query}")).await.ok();
        assert_eq!((&page["count"], ids(&page)), (&json!(12), all[from..to].to_vec()), "{query}");
    }
}

#[tokio::test]
async fn page_has_one_hundred_items_by_default_and_at_most_one_thousand() {
    let workspace = with_dashboards(Config::default(), 1001).await;
    let list = workspace.dashboards("");
    for (query, shown) in
        [("", 100), ("?limit=1000", 1000), ("?limit=1001", 1000), ("?limit=1001&offset=1000", 1)]
    {
        let page = workspace.owner.get(&format!("{list}{query}")).await.ok();
        assert_eq!((ids(&page).len(), &page["count"]), (shown, &json!(1001)), "{query}");
    }
}

#[tokio::test]
async fn next_and_previous_are_absolute_urls_with_limit_and_offset() {
    let workspace = with_dashboards(Config::default(), 5).await;
    let list = workspace.dashboards("");
    let url = format!("http://admin.example:8000{list}");
    for (query, next, previous) in [
        ("", None, None),
        ("?limit=2", Some("limit=2&offset=2"), None),
        ("?limit=2&offset=1", Some("limit=2&offset=3"), Some("limit=2")),
        ("?limit=2&offset=3", None, Some("limit=2&offset=1")),
        ("?limit=x&offset=2", None, Some("limit=100")),
        ("?limit=9999&offset=2000", None, Some("limit=1000&offset=1000")),
    ] {
        let path = format!("{list}{query}");
        let host = [(HOST.as_str(), "admin.example:8000")];
        let page = workspace.owner.fetch(Method::GET, &path, &host, "").await.ok();
        let link = |query: Option<&str>| json!(query.map(|query| format!("{url}?{query}")));
        assert_eq!((&page["next"], &page["previous"]), (&link(next), &link(previous)), "{query}");
        let names: Vec<_> = page.as_object().expect("an object").keys().collect();
        assert_eq!(names, ["count", "next", "previous", "results"]);
    }
}

#[tokio::test]
async fn page_links_use_the_public_url_and_forwarded_headers_only_of_a_trusted_proxy() {
    let mut public = Config::default();
    public.public_url = Some("https://public.example".to_owned());
    let mut trusting = Config::default();
    trusting.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    for (config, base) in [
        (public, "https://public.example"),
        (trusting, "https://seen.example"),
        (Config::default(), "http://inner:1"),
    ] {
        let workspace = with_dashboards(config, 2).await;
        let list = workspace.dashboards("").trim_end_matches('/').to_owned();
        let headers = [
            (HOST.as_str(), "inner:1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "seen.example"),
        ];
        let path = format!("{list}?seek=a+b&limit=1&offset=1");
        let page = workspace.owner.fetch(Method::GET, &path, &headers, "").await.ok();
        assert_eq!(page["previous"], format!("{base}{list}?limit=1&seek=a+b"));
        assert_eq!(page["next"], json!(null));
    }
}
