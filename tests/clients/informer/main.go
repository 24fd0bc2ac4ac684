// informer uses a server through client-go, as controllers do: an informer over list and watch or over a streamed list
// (WatchList), typed clients and a metadata client in protobuf, and leader election by a Lease.
//
// informer KUBECONFIG NAMESPACE prints one line after each part and exits at the first unexpected result.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	config.QPS, config.Burst = 1000, 1000
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	namespace := os.Args[2]
	inform(ctx, config, namespace)
	fmt.Println("informer")
	typed(ctx, config, namespace)
	fmt.Println("typed")
	watchMetadata(ctx, config, namespace)
	fmt.Println("metadata")
	mapping(config)
	fmt.Println("mapping")
	elect(ctx, config, namespace)
	fmt.Println("election")
}

func check(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func expect(name, actual, expected string) {
	if actual != expected {
		check(fmt.Errorf("%s: expected %s, got %s", name, expected, actual))
	}
}

// inform receives the existing objects, then every later change in order.
func inform(ctx context.Context, config *rest.Config, namespace string) {
	client := dynamic.NewForConfigOrDie(config)
	objects := client.Resource(widgets).Namespace(namespace)
	for _, name := range []string{"a", "b"} {
		_, err := objects.Create(ctx, widget(name, 1), metav1.CreateOptions{})
		check(err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	informer := factory.ForResource(widgets).Informer()
	var lock sync.Mutex
	var seen []string
	record := func(event string) func(any) {
		return func(object any) {
			lock.Lock()
			defer lock.Unlock()
			widget := object.(*unstructured.Unstructured)
			size, _, _ := unstructured.NestedInt64(widget.Object, "spec", "size")
			seen = append(seen, fmt.Sprintf("%s %s %d", event, widget.GetName(), size))
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    record("add"),
		UpdateFunc: func(_, object any) { record("update")(object) },
		DeleteFunc: record("delete"),
	})
	check(err)
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		check(fmt.Errorf("the informer does not sync"))
	}
	expect("the number of known objects", fmt.Sprint(len(informer.GetStore().List())), "2")
	patch := []byte(`{"spec":{"size":2}}`)
	_, err = objects.Patch(ctx, "a", types.MergePatchType, patch, metav1.PatchOptions{})
	check(err)
	_, err = objects.Create(ctx, widget("c", 3), metav1.CreateOptions{})
	check(err)
	check(objects.Delete(ctx, "b", metav1.DeleteOptions{}))
	expected := "update a 2; add c 3; delete b 1"
	waitUntil(func() bool {
		lock.Lock()
		defer lock.Unlock()
		return len(seen) >= 5
	})
	expect("the events", strings.Join(seen[2:], "; "), expected)
}

// typed writes built-in kinds in protobuf.
func typed(ctx context.Context, config *rest.Config, namespace string) {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	core := kubernetes.NewForConfigOrDie(config).CoreV1()
	data := map[string]string{"a": "b", "empty": ""}
	created, err := core.ConfigMaps(namespace).Create(
		ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: data}, metav1.CreateOptions{})
	check(err)
	created.Data["c"] = "d"
	updated, err := core.ConfigMaps(namespace).Update(ctx, created, metav1.UpdateOptions{})
	check(err)
	expect("the config map", fmt.Sprint(updated.Data), "map[a:b c:d empty:]")
	_, err = core.ConfigMaps(namespace).Update(ctx, created, metav1.UpdateOptions{})
	if err == nil {
		check(fmt.Errorf("no conflict"))
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"a": "b"}}
	stored, err := core.Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	check(err)
	expect("the secret", string(stored.Data["a"]), "b")
	watch, err := core.ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: updated.ResourceVersion})
	check(err)
	background := metav1.DeletePropagationBackground
	check(core.ConfigMaps(namespace).Delete(ctx, "c", metav1.DeleteOptions{PropagationPolicy: &background}))
	expect("the event", string((<-watch.ResultChan()).Type), "DELETED")
	watch.Stop()
}

// watchMetadata lists and watches only the metadata of objects, in protobuf.
func watchMetadata(ctx context.Context, config *rest.Config, namespace string) {
	objects := metadata.NewForConfigOrDie(config).Resource(widgets).Namespace(namespace)
	list, err := objects.List(ctx, metav1.ListOptions{})
	check(err)
	expect("the metadata", list.Items[0].Name, "a")
	watch, err := objects.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	check(err)
	patch := []byte(`{"metadata":{"labels":{"x":"y"}}}`)
	_, err = objects.Patch(ctx, "a", types.MergePatchType, patch, metav1.PatchOptions{})
	check(err)
	event := <-watch.ResultChan()
	expect("the event", string(event.Type), "MODIFIED")
	expect("the label", event.Object.(*metav1.PartialObjectMetadata).Labels["x"], "y")
	watch.Stop()
}

// mapping finds a resource by its kind, as kubectl and controllers do.
func mapping(config *rest.Config) {
	resources, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(config))
	check(err)
	found, err := restmapper.NewDiscoveryRESTMapper(resources).RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"})
	check(err)
	expect("the resource", found.Resource.String(), widgets.String())
}

// elect has a leader that releases the Lease, so that the next candidate takes over immediately.
func elect(ctx context.Context, config *rest.Config, namespace string) {
	client := kubernetes.NewForConfigOrDie(config)
	for _, name := range []string{"one", "two"} {
		meta := metav1.ObjectMeta{Name: "lock", Namespace: namespace}
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  meta,
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		term, resign := context.WithCancel(ctx)
		leaderelection.RunOrDie(term, leaderelection.LeaderElectionConfig{
			Lock:            lock,
			LeaseDuration:   30 * time.Second,
			RenewDeadline:   20 * time.Second,
			RetryPeriod:     200 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { resign() },
				OnStoppedLeading: func() {},
			},
		})
		lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "lock", metav1.GetOptions{})
		check(err)
		expect("the holder after "+name, *lease.Spec.HolderIdentity, "")
	}
}

func widget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"size": size},
	}}
}

func waitUntil(condition func() bool) {
	for range 3000 {
		if condition() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	check(fmt.Errorf("the condition does not hold after 60 s"))
}
