// database is an operator as they are written in Go: for each Database it creates a headless Service, a PodDisruptionBudget and
// a StatefulSet, and its status says whether all of them are ready: `database KUBECONFIG NAMESPACE`.
package main

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

const label = "database"

var databases = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "databases"}

type operator struct {
	clients   kubernetes.Interface
	databases dynamic.ResourceInterface
	namespace string
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		panic(err)
	}
	config.QPS, config.Burst = 1000, 1000
	ctx, client := context.Background(), dynamic.NewForConfigOrDie(config)
	it := operator{kubernetes.NewForConfigOrDie(config), client.Resource(databases).Namespace(os.Args[2]), os.Args[2]}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	seen := func(object any) {
		if found, ok := object.(*unstructured.Unstructured); ok {
			if found.GetKind() == "Database" {
				queue.Add(found.GetName())
			} else if name := found.GetLabels()[label]; name != "" {
				queue.Add(name)
			}
		}
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, it.namespace, nil)
	for _, watched := range []schema.GroupVersionResource{
		databases,
		{Group: "apps", Version: "v1", Resource: "statefulsets"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	} {
		_, err := factory.ForResource(watched).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: seen, DeleteFunc: seen, UpdateFunc: func(_, object any) { seen(object) },
		})
		if err != nil {
			panic(err)
		}
	}
	factory.Start(ctx.Done())
	for {
		name, _ := queue.Get()
		if err := it.reconcile(ctx, name); err != nil {
			fmt.Println(name, err)
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

func (it operator) reconcile(ctx context.Context, name string) error {
	database, err := it.databases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && database.GetDeletionTimestamp() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	replicas, _, err := unstructured.NestedInt64(database.Object, "spec", "replicas")
	if err != nil {
		return err
	}
	if err := it.ensure(ctx, database, int32(replicas)); err != nil {
		return err
	}
	ready, err := it.ready(ctx, name, int32(replicas))
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"status": {"ready": %t}}`, ready)
	_, err = it.databases.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (it operator) ensure(ctx context.Context, database *unstructured.Unstructured, replicas int32) error {
	name, labels := database.GetName(), map[string]string{label: database.GetName()}
	owner := metav1.NewControllerRef(database, database.GroupVersionKind())
	meta := metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{*owner}}
	selector, least := &metav1.LabelSelector{MatchLabels: labels}, intstr.FromInt32(replicas-1)
	_, err := it.clients.CoreV1().Services(it.namespace).Create(ctx, &corev1.Service{
		ObjectMeta: meta,
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: labels, Ports: []corev1.ServicePort{{Name: "sql", Port: 5432}},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = it.clients.PolicyV1().PodDisruptionBudgets(it.namespace).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: selector},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = it.clients.AppsV1().StatefulSets(it.namespace).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: name, Selector: selector,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "db", Image: "postgres", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					},
				},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func (it operator) ready(ctx context.Context, name string, replicas int32) (bool, error) {
	set, err := it.clients.AppsV1().StatefulSets(it.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	budget, err := it.clients.PolicyV1().PodDisruptionBudgets(it.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	slices, err := it.clients.DiscoveryV1().EndpointSlices(it.namespace).List(ctx, metav1.ListOptions{LabelSelector: label + "=" + name})
	if err != nil {
		return false, err
	}
	reachable := int32(0)
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				reachable++
			}
		}
	}
	return set.Status.ReadyReplicas == replicas && budget.Status.DisruptionsAllowed == 1 && reachable == replicas, nil
}
