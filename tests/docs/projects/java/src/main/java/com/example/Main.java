package com.example;

import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;

/** A controller of widgets: it writes the size of a widget into its status. */
public class Main {
  @ControllerConfiguration
  public static class Sizes implements Reconciler<Widget> {
    @Override
    public UpdateControl<Widget> reconcile(Widget widget, Context<Widget> context) {
      widget.setStatus(widget.getSpec());
      return UpdateControl.patchStatus(widget);
    }
  }

  public static void main(String[] arguments) {
    Operator operator = new Operator();
    operator.register(new Sizes());
    operator.start();
  }
}
