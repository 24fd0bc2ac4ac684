package suite

import (
	"context"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A ConfigMap stands for a custom resource: the controller makes a StatefulSet of it, and counts its ready pods in an annotation.
func reconciled(c client.Client) reconcile.Func {
	return func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		owner := &corev1.ConfigMap{}
		if err := c.Get(ctx, request.NamespacedName, owner); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}
		_, err := controllerutil.CreateOrUpdate(ctx, c, set, func() error {
			labels, replicas := map[string]string{"app": request.Name}, int32(2)
			set.Spec.Replicas, set.Spec.ServiceName = &replicas, request.Name
			set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			set.Spec.Template.Labels = labels
			set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Image: "postgres"}}
			return controllerutil.SetControllerReference(owner, set, c.Scheme())
		})
		if err != nil || set.Status.ReadyReplicas < 2 || owner.Annotations["ready"] == "true" {
			return reconcile.Result{}, err
		}
		owner.Annotations = map[string]string{"ready": "true"}
		return reconcile.Result{}, c.Update(ctx, owner)
	}
}

func TestWorkloadsBecomeReady(t *testing.T) {
	if os.Getenv("NOXU_NODES") == "" {
		t.Skip("NOXU_NODES is not set")
	}
	ctx, cancel := context.WithCancel(context.Background())
	environment := &envtest.Environment{}
	config, err := environment.Start()
	must(t, err)
	t.Cleanup(func() {
		cancel()
		must(t, environment.Stop())
	})
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	must(t, ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&appsv1.StatefulSet{}).Complete(reconciled(manager.GetClient())))
	go func() { _ = manager.Start(ctx) }()
	admin, err := client.New(config, client.Options{})
	must(t, err)
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	must(t, admin.Create(ctx, made))
	must(t, wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(made), made)
		return made.Annotations["ready"] == "true", err
	}))
}
