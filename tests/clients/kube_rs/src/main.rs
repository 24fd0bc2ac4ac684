//! Does what a test says, through kube-rs. The commands are those of `../informer/driven/main.go`.
//!
//! `driven [streamed]` reads the kubeconfig that KUBECONFIG names. With `streamed`, watchers ask for streamed lists.

use std::{
    collections::{BTreeMap, HashMap},
    env,
    future::{Future, ready},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, Error, ResourceExt,
    api::{ObjectMeta, PostParams},
    runtime::{
        WatchStreamExt,
        reflector::{self, ObjectRef, Store},
        watcher::{self, Event, watcher},
    },
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::timeout,
};

const MOST_TRIES: usize = 5;

type Events = Arc<Mutex<Vec<String>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::infer().await?;
    config
        .headers
        .push(("user-agent".parse()?, "driven/kube-rs".parse()?));
    let client = Client::try_from(config)?;
    let watching = match env::args().nth(1).as_deref() {
        Some("streamed") => watcher::Config::default().streaming_lists(),
        _ => watcher::Config::default(),
    };
    let mut followers = HashMap::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let words: Vec<&str> = line.split(' ').collect();
        let (namespace, name) = (words[1], words.get(2).copied().unwrap_or_default());
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let answer = match words[0] {
            "create" => json!(create(&api, name, words.get(3)).await),
            "ensure" => json!(repeat(|| write(&api, named(name))).await),
            "generate" => json!(repeat(|| write(&api, generated(name))).await),
            "increase" => json!(repeat(|| increase(&api, name)).await),
            "follow" => {
                followers.insert(namespace.to_owned(), follow(api, watching.clone()));
                json!("done")
            }
            "seen" => seen(&followers[namespace]),
            unknown => panic!("there is no command {unknown}"),
        };
        println!("{answer}");
    }
    Ok(())
}

// -- writes

async fn create(api: &Api<ConfigMap>, name: &str, seconds: Option<&&str>) -> String {
    let limit = seconds.map_or(Duration::MAX, |text| {
        Duration::from_secs_f64(text.parse().unwrap())
    });
    timeout(limit, write(api, named(name)))
        .await
        .unwrap_or("timed out".to_owned())
}

async fn write(api: &Api<ConfigMap>, value: ConfigMap) -> String {
    outcome(api.create(&PostParams::default(), &value).await)
}

async fn increase(api: &Api<ConfigMap>, name: &str) -> String {
    let mut found = match api.get(name).await {
        Ok(found) => found,
        Err(error) => return outcome(Err(error)),
    };
    let number: u32 = n(&found).unwrap().parse().unwrap();
    found.data = Some(BTreeMap::from([("n".to_owned(), (number + 1).to_string())]));
    outcome(api.replace(name, &PostParams::default(), &found).await)
}

/// Again after any error, as a controller does that takes up an object again.
async fn repeat<F: Future<Output = String>>(request: impl Fn() -> F) -> Vec<String> {
    let mut outcomes = Vec::new();
    while outcomes.len() < MOST_TRIES {
        let outcome = request().await;
        let is_last = outcome == "done" || outcome == "AlreadyExists";
        outcomes.push(outcome);
        if is_last {
            break;
        }
    }
    outcomes
}

fn outcome(result: Result<ConfigMap, Error>) -> String {
    match result {
        Ok(_) => "done".to_owned(),
        Err(Error::Api(status)) => status.reason,
        Err(Error::HyperError(_) | Error::Service(_)) => "lost".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn named(name: &str) -> ConfigMap {
    one(ObjectMeta {
        name: Some(name.to_owned()),
        ..Default::default()
    })
}

fn generated(prefix: &str) -> ConfigMap {
    one(ObjectMeta {
        generate_name: Some(prefix.to_owned()),
        ..Default::default()
    })
}

fn one(metadata: ObjectMeta) -> ConfigMap {
    let data = Some(BTreeMap::from([("n".to_owned(), "1".to_owned())]));
    ConfigMap {
        metadata,
        data,
        ..Default::default()
    }
}

fn n(value: &ConfigMap) -> Option<&String> {
    value.data.as_ref()?.get("n")
}

// -- watchers and reflectors

fn follow(api: Api<ConfigMap>, config: watcher::Config) -> (Store<ConfigMap>, Events) {
    let (store, writer) = reflector::store();
    let (before, events) = (store.clone(), Events::default());
    let seen = events.clone();
    let stream = watcher(api, config)
        .default_backoff()
        .inspect(move |event| record(event, &before, &seen))
        .reflect(writer);
    tokio::spawn(stream.for_each(|_| ready(())));
    (store, events)
}

/// A watcher tells no additions from updates: it is one if the reflector, which comes after, does not have the object.
fn record(event: &watcher::Result<Event<ConfigMap>>, before: &Store<ConfigMap>, events: &Events) {
    let (kind, value) = match event {
        Ok(Event::Apply(value) | Event::InitApply(value)) => {
            match before.get(&ObjectRef::from_obj(value)) {
                Some(_) => ("update", value),
                None => ("add", value),
            }
        }
        Ok(Event::Delete(value)) => ("delete", value),
        _ => return,
    };
    if let Some(number) = n(value) {
        let event = format!("{kind} {} {number}", value.name_any());
        events.lock().unwrap().push(event);
    }
}

fn seen((store, events): &(Store<ConfigMap>, Events)) -> Value {
    let shown = |value: Arc<ConfigMap>| Some(format!("{} {}", value.name_any(), n(&value)?));
    let mut there: Vec<String> = store.state().into_iter().filter_map(shown).collect();
    there.sort();
    json!({"store": there, "events": *events.lock().unwrap()})
}
