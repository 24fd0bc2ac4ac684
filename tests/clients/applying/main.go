// applying uses server-side apply through client-go, as controllers do: typed and untyped configurations, conflicts as
// its errors package recognizes them, extracting the applied configuration, and the status subresource.
//
// applying KUBECONFIG NAMESPACE panics at the first unexpected result.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordination "k8s.io/client-go/applyconfigurations/coordination/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	namespace := os.Args[2]
	customResources(ctx, dynamic.NewForConfigOrDie(config).Resource(widgets).Namespace(namespace))
	builtInKinds(ctx, kubernetes.NewForConfigOrDie(config), namespace)
}

func customResources(ctx context.Context, client dynamic.ResourceInterface) {
	by := func(manager string, force bool) metav1.ApplyOptions {
		return metav1.ApplyOptions{FieldManager: manager, Force: force}
	}
	_, err := client.Apply(ctx, "a", widget("spec", map[string]any{"size": int64(1), "colour": "red"}), by("one", false))
	check(err)
	_, err = client.Apply(ctx, "a", widget("spec", map[string]any{"size": int64(2)}), by("two", false))
	must(apierrors.IsConflict(err), "a conflict, got %v", err)
	causes := err.(apierrors.APIStatus).Status().Details.Causes
	must(len(causes) == 1 && causes[0].Type == metav1.CauseTypeFieldManagerConflict, "one conflict cause, got %v", causes)
	must(causes[0].Field == ".spec.size", "the field .spec.size, got %v", causes[0].Field)
	forced, err := client.Apply(ctx, "a", widget("spec", map[string]any{"size": int64(2)}), by("two", true))
	check(err)
	must(len(forced.GetManagedFields()) == 2, "two managers, got %v", forced.GetManagedFields())
	_, err = client.ApplyStatus(ctx, "a", widget("status", map[string]any{"size": int64(2)}), by("one", false))
	check(err)
	remaining, err := client.Apply(ctx, "a", widget("spec", map[string]any{"size": int64(2)}), by("one", false))
	check(err)
	must(fmt.Sprint(remaining.Object["spec"], remaining.Object["status"]) == "map[size:2] map[size:2]", "the spec and status without colour, got %v", remaining)
}

func widget(part string, value map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": "a"},
		part:         value,
	}}
}

func builtInKinds(ctx context.Context, client kubernetes.Interface, namespace string) {
	options := metav1.ApplyOptions{FieldManager: "one"}
	maps := client.CoreV1().ConfigMaps(namespace)
	configuration := core.ConfigMap("c", namespace).WithData(map[string]string{"a": "1"}).WithLabels(map[string]string{"l": "m"})
	applied, err := maps.Apply(ctx, configuration, options)
	check(err)
	own, err := core.ExtractConfigMap(applied, "one")
	check(err)
	must(fmt.Sprint(own.Data, own.Labels) == "map[a:1] map[l:m]", "the applied data and labels, got %v", own)
	other, err := core.ExtractConfigMap(applied, "two")
	check(err)
	must(other.Data == nil, "no data of another manager, got %v", other.Data)
	changed, err := maps.Apply(ctx, own.WithData(map[string]string{"b": "2"}), options)
	check(err)
	must(fmt.Sprint(changed.Data) == "map[a:1 b:2]", "both entries, got %v", changed.Data)

	lease := coordination.Lease("l", namespace).WithSpec(coordination.LeaseSpec().WithHolderIdentity("me"))
	_, err = client.CoordinationV1().Leases(namespace).Apply(ctx, lease, options)
	check(err)
	_, err = client.CoreV1().Namespaces().Apply(ctx, core.Namespace(namespace).WithLabels(map[string]string{"l": "m"}), options)
	check(err)
	account := core.ServiceAccount("s", namespace).WithSecrets(core.ObjectReference().WithName("x"))
	_, err = client.CoreV1().ServiceAccounts(namespace).Apply(ctx, account, options)
	check(err)
}

func must(condition bool, expected string, arguments ...any) {
	if !condition {
		panic("expected " + fmt.Sprintf(expected, arguments...))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
