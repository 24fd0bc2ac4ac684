//! A controller of widgets: it writes the size of a widget into its status.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{
    Api, Client, CustomResource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{Controller, controller::Action, watcher},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus"
)]
struct WidgetSpec {
    size: i64,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct WidgetStatus {
    size: i64,
}

async fn reconcile(widget: Arc<Widget>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let api: Api<Widget> =
        Api::namespaced((*client).clone(), &widget.namespace().unwrap_or_default());
    let status = json!({"status": WidgetStatus { size: widget.spec.size }});
    api.patch_status(
        &widget.name_any(),
        &PatchParams::default(),
        &Patch::Merge(status),
    )
    .await?;
    Ok(Action::await_change())
}

fn retry(_: Arc<Widget>, error: &kube::Error, _: Arc<Client>) -> Action {
    eprintln!("{error}");
    Action::requeue(Duration::from_secs(1))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), kube::Error> {
    let client = Client::try_default().await?;
    let widgets: Api<Widget> = Api::all(client.clone());
    Controller::new(widgets, watcher::Config::default())
        .run(reconcile, retry, Arc::new(client))
        .for_each(|result| async move { println!("{result:?}") })
        .await;
    Ok(())
}
