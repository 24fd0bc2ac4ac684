// A controller of Sites: each gets a ConfigMap with its page, whose name its status has.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var siteKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &unstructured.Unstructured{}
	site.SetGroupVersionKind(siteKind)
	if err := r.Get(ctx, request.NamespacedName, site); err != nil || site.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	page, _, _ := unstructured.NestedString(site.Object, "spec", "page")
	name, _, _ := unstructured.NestedString(site.Object, "status", "configMap")
	if name == "" {
		config := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: site.GetNamespace(), GenerateName: site.GetName() + "-"},
			Data:       map[string]string{"index.html": page},
		}
		if err := ctrl.SetControllerReference(site, config, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Create(ctx, config); err != nil {
			return ctrl.Result{}, err
		}
		unstructured.SetNestedField(site.Object, config.Name, "status", "configMap")
		return ctrl.Result{}, r.Status().Update(ctx, site)
	}
	config := &corev1.ConfigMap{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: site.GetNamespace(), Name: name}, config); err != nil {
		return ctrl.Result{}, err
	}
	if config.Data["index.html"] == page {
		return ctrl.Result{}, nil
	}
	config.Data = map[string]string{"index.html": page}
	return ctrl.Result{}, r.Update(ctx, config)
}

func main() {
	ctrl.SetLogger(zap.New())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err == nil {
		site := &unstructured.Unstructured{}
		site.SetGroupVersionKind(siteKind)
		err = ctrl.NewControllerManagedBy(manager).For(site).Owns(&corev1.ConfigMap{}).Complete(&reconciler{manager.GetClient()})
	}
	if err == nil {
		err = manager.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		ctrl.Log.Error(err, "the manager ends")
		os.Exit(1)
	}
}
