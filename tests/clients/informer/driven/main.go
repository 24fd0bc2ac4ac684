// driven does what a test says, through client-go: `driven KUBECONFIG` reads a command a line and answers with JSON.
//
//	create NAMESPACE NAME [SECONDS]  one request; the answer is its outcome
//	ensure NAMESPACE NAME            again after an error, until the object is there; the outcomes
//	generate NAMESPACE PREFIX        again after an error, until an object is created; the outcomes
//	increase NAMESPACE NAME          get, and update with n + 1: again after a Conflict or a lost connection; the outcomes
//	follow NAMESPACE                 start an informer
//	seen NAMESPACE                   what it has seen: {"store": ["NAME n", …], "events": ["add NAME n", …]}
//
// The objects are ConfigMaps with a number n; others are ignored. An outcome is `done`, the reason of a Status, `lost` or `timed out`.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	client     dynamic.Interface
	followers  = map[string]*follower{}
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		panic(err)
	}
	config.QPS, config.Burst = 1000, 1000
	config.UserAgent = "driven/client-go"
	client = dynamic.NewForConfigOrDie(config)
	commands := map[string]func(namespace string, more ...string) any{
		"create": create, "ensure": ensure, "generate": generate, "increase": increase, "follow": follow, "seen": seen,
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		answer, err := json.Marshal(commands[words[0]](words[1], words[2:]...))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(answer))
	}
}

// -- writes

func create(namespace string, more ...string) any {
	ctx := context.Background()
	if len(more) > 1 {
		seconds, _ := strconv.ParseFloat(more[1], 64)
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
		defer cancel()
	}
	_, err := client.Resource(configMaps).Namespace(namespace).Create(ctx, object("name", more[0]), metav1.CreateOptions{})
	return outcome(err)
}

func ensure(namespace string, more ...string) any {
	return repeat(func() error {
		_, err := client.Resource(configMaps).Namespace(namespace).Create(
			context.Background(), object("name", more[0]), metav1.CreateOptions{})
		return err
	})
}

func generate(namespace string, more ...string) any {
	return repeat(func() error {
		_, err := client.Resource(configMaps).Namespace(namespace).Create(
			context.Background(), object("generateName", more[0]), metav1.CreateOptions{})
		return err
	})
}

func increase(namespace string, more ...string) any {
	objects := client.Resource(configMaps).Namespace(namespace)
	return repeat(func() error {
		found, err := objects.Get(context.Background(), more[0], metav1.GetOptions{})
		if err != nil {
			return err
		}
		number, _ := strconv.Atoi(n(found))
		_ = unstructured.SetNestedField(found.Object, strconv.Itoa(number+1), "data", "n")
		_, err = objects.Update(context.Background(), found, metav1.UpdateOptions{})
		return err
	})
}

// repeat is retry.OnError, as a controller has it that takes up an object again after any error.
func repeat(request func() error) []string {
	outcomes := []string{}
	_ = retry.OnError(
		retry.DefaultRetry,
		func(err error) bool { return !apierrors.IsAlreadyExists(err) },
		func() error {
			err := request()
			outcomes = append(outcomes, outcome(err))
			return err
		})
	return outcomes
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return string(apierrors.ReasonForError(err))
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out"
	case utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err):
		return "lost"
	}
	return err.Error()
}

func object(naming, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{naming: name},
		"data":       map[string]any{"n": "1"},
	}}
}

func n(object *unstructured.Unstructured) string {
	number, _, _ := unstructured.NestedString(object.Object, "data", "n")
	return number
}

// -- informers

type follower struct {
	store  cache.Store
	lock   sync.Mutex
	events []string
}

func follow(namespace string, _ ...string) any {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, configMaps, namespace, 0, cache.Indexers{}, nil).Informer()
	followed := &follower{store: informer.GetStore(), events: []string{}}
	record := func(event string, value any) {
		followed.lock.Lock()
		defer followed.lock.Unlock()
		if last, ok := value.(cache.DeletedFinalStateUnknown); ok {
			value = last.Obj
		}
		if object := value.(*unstructured.Unstructured); n(object) != "" {
			followed.events = append(followed.events, fmt.Sprintf("%s %s %s", event, object.GetName(), n(object)))
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { record("add", object) },
		UpdateFunc: func(_, object any) { record("update", object) },
		DeleteFunc: func(object any) { record("delete", object) },
	})
	followers[namespace] = followed
	go informer.Run(make(chan struct{}))
	return outcome(err)
}

func seen(namespace string, _ ...string) any {
	followed := followers[namespace]
	followed.lock.Lock()
	defer followed.lock.Unlock()
	store := []string{}
	for _, value := range followed.store.List() {
		if object := value.(*unstructured.Unstructured); n(object) != "" {
			store = append(store, fmt.Sprintf("%s %s", object.GetName(), n(object)))
		}
	}
	sort.Strings(store)
	return map[string]any{"store": store, "events": followed.events}
}
