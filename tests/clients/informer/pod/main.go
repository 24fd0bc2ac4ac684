// pod is a client in a pod: its configuration is rest.InClusterConfig. It prints the names of the ConfigMaps in its
// namespace, and the reason for which it may not list Secrets.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func main() {
	config, err := rest.InClusterConfig()
	check(err)
	client, err := kubernetes.NewForConfig(config)
	check(err)
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	check(err)
	maps, err := client.CoreV1().ConfigMaps(string(namespace)).List(context.Background(), metav1.ListOptions{})
	check(err)
	for _, item := range maps.Items {
		fmt.Println(item.Name)
	}
	_, err = client.CoreV1().Secrets(string(namespace)).List(context.Background(), metav1.ListOptions{})
	fmt.Println(errors.ReasonForError(err))
}

func check(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}
