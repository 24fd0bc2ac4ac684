// A suite as projects with controller-runtime have it: envtest, a CRD, users, a manager with a webhook.
package suite

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func widget(name string) *unstructured.Unstructured {
	found := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	found.SetNamespace("default")
	found.SetName(name)
	return found
}

func webhooks() *admissionv1.ValidatingWebhookConfiguration {
	none, ignore, path := admissionv1.SideEffectClassNone, admissionv1.Fail, "/validate"
	return &admissionv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "widgets.example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             &none,
			FailurePolicy:           &ignore,
			ClientConfig:            admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "default", Name: "s", Path: &path}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{"CREATE"},
				Rule:       admissionv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"widgets"}},
			}},
		}},
	}
}

func validate(_ context.Context, request admission.Request) admission.Response {
	if request.Name == "bad" {
		return admission.Denied("the name is bad")
	}
	return admission.Allowed("")
}

func TestEnvironment(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{"crds"},
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{webhooks()},
		},
	}
	config, err := environment.Start()
	must(t, err)
	t.Cleanup(func() {
		cancel()
		must(t, environment.Stop())
	})

	options := environment.WebhookInstallOptions
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:       server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir}),
	})
	must(t, err)
	manager.GetWebhookServer().Register("/validate", &webhook.Admission{Handler: admission.HandlerFunc(validate)})
	go func() { _ = manager.Start(ctx) }()

	admin, err := client.New(config, client.Options{})
	must(t, err)
	must(t, wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return admin.Create(ctx, widget("good")) == nil, nil // until the webhook listens
	}))
	if err := admin.Create(ctx, widget("bad")); err == nil || !strings.Contains(err.Error(), "the name is bad") {
		t.Fatalf("the webhook has not refused: %v", err)
	}
	good := widget("good")
	must(t, manager.GetClient().Get(ctx, client.ObjectKeyFromObject(good), good))
	if size, _, _ := unstructured.NestedInt64(good.Object, "spec", "size"); size != 1 {
		t.Fatalf("not defaulted: %v", good)
	}

	user, err := environment.AddUser(envtest.User{Name: "dev", Groups: []string{"team"}}, nil)
	must(t, err)
	dev, err := client.New(user.Config(), client.Options{Mapper: admin.RESTMapper()})
	must(t, err)
	if err := dev.Get(ctx, client.ObjectKeyFromObject(good), good); !apierrors.IsForbidden(err) {
		t.Fatalf("not refused: %v", err)
	}
	must(t, admin.Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"widgets"}, Verbs: []string{"get"}}},
	}))
	must(t, admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "widgets"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "widgets"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "team"}},
	}))
	must(t, dev.Get(ctx, client.ObjectKeyFromObject(good), good))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
